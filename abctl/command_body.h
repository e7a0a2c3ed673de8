/*
 * command_body.h - the part of a request that says which command: argv, env,
 * directory, terminal.  Shared by jail and exec.
 */
#ifndef ABCTL_COMMAND_BODY_H
#define ABCTL_COMMAND_BODY_H

#include "abctl/attach.h"
#include "abctl/opts.h"
#include "base/json.h"

struct command_args {
	struct opt_list env;
	const char *cwd;
	bool tty, quiet;
};

/* The rows of the option table, for a verb's args that begin with struct command_args. */
#define COMMAND_OPTS                                                                               \
	{"env", 'e', OPT_LIST, offsetof(struct command_args, env), "K=V",                          \
	        "a variable of the command's environment"},                                        \
	        {"cwd", 'C', OPT_TEXT, offsetof(struct command_args, cwd), "DIR",                  \
	                "its working directory, in the jail"},                                     \
	        {"tty", 't', OPT_FLAG, offsetof(struct command_args, tty), NULL,                   \
	                "give it a terminal"},                                                     \
	{                                                                                          \
		"quiet", 'q', OPT_FLAG, offsetof(struct command_args, quiet), NULL,                \
		        "say nothing about connections that were refused"                          \
	}

/* Members "argv", "env", "cwd", "tty", "rows", "cols".  0, or an exit code after having said why.
 */
int command_body(struct jw *w, const struct command_args *a, const struct attach_terminal *t,
        int argc, char **argv);

#endif
