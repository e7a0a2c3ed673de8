/*
 * verb.h - a verb of abctl as data, and what all verbs share.
 *
 * Each verb lives in its own cmd_*.c with one const entry; the table in
 * verbs.c is the registry, from which dispatch, help and shell completion are
 * made.  Options are parsed before `run` is called, into a zeroed struct of
 * `args_size` bytes described by `opts`.
 */
#ifndef ABCTL_VERB_H
#define ABCTL_VERB_H

#include "client/client.h"
#include "abctl/opts.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,   /* the run or command failed */
	EXIT_USAGE = 100,  /* the caller's fault */
	EXIT_SYSTEM = 111, /* no daemon, a refused layer, an internal error */
};

struct cli {
	struct client_peer peer; /* borrowed: argv, environment or literal */
	bool json;
};

struct verb {
	const char *name;
	const char *synopsis; /* what follows "abctl NAME" */
	const char *summary;  /* one line of the overview */
	const char *help;     /* paragraphs, or NULL */
	/* What help of one operand has beyond that, on stdout; or NULL. */
	void (*more_help)(const struct cli *cli, const char *operand);
	const char *words; /* second words ("ls show lint"), of which the first operand is one; or
	                      NULL */
	const struct opt *opts; /* ends with a NULL name; NULL: none of its own */
	size_t args_size;
	bool command; /* what follows the first operand (or --) is a command */
	int min, max; /* operands */
	/* Returns the exit code.  `args` is NULL when args_size is 0. */
	int (*run)(struct cli *cli, const void *args, int argc, char **argv);
};

/* One a file, cmd_*.c. */
extern const struct verb cmd_run, cmd_jail, cmd_exec, cmd_forward, cmd_ps, cmd_top, cmd_runs,
        cmd_show, cmd_logs, cmd_cancel, cmd_approve, cmd_deny, cmd_answer, cmd_send, cmd_chat,
        cmd_artifacts, cmd_sessions, cmd_session, cmd_harness, cmd_agent, cmd_pack, cmd_policy,
        cmd_egress, cmd_audit, cmd_webhook, cmd_key, cmd_snapshot, cmd_doctor, cmd_stats,
        cmd_metrics, cmd_reload, cmd_drain, cmd_backup, cmd_restore, cmd_version, cmd_completion,
        cmd_help;

/* The registry, ended by NULL. */
extern const struct verb *const verbs[];
const struct verb *verb_find(const char *name);
/* Says that there is no such verb, and which one may be meant. EXIT_USAGE. */
int verb_unknown(const char *name);

/* Options that may stand before the verb and after it; they fill a struct cli. */
extern const struct opt verb_common[];

/* Parses what follows the verb, and does it.  The exit code. */
int verb_run(struct cli *cli, const struct verb *v, int argc, char **argv);

/* Text of `abctl help`, and of one verb, on stdout. */
void verb_overview(void);
void verb_help(const struct verb *v);

#endif
