#include "abctl/command_body.h"
#include "abctl/fail.h"
#include "base/neutral.h"
#include "abctl/pairs.h"

#include <stdlib.h>
#include <string.h>

static int environment(struct jw *w, const struct command_args *a)
{
	const char *term = getenv("TERM");
	int r = pairs_check("env", &a->env);
	if (r || (!a->env.n && !a->tty))
		return r;
	jw_open(w, "env", '{');
	pairs_write(w, &a->env);
	/* A program on a terminal has to know which kind this side is. */
	if (a->tty && term && !pairs_have(&a->env, "TERM"))
		jw_str(w, "TERM", term);
	jw_close(w, '}');
	return 0;
}

int command_body(struct jw *w, const struct command_args *a, const struct attach_terminal *t,
        int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (!neutral_is_text(argv[i], strlen(argv[i])))
			return fail_usage("argument %d of the command is not UTF-8", i + 1);
	jw_open(w, "argv", '[');
	for (int i = 0; i < argc; i++)
		jw_str(w, NULL, argv[i]);
	jw_close(w, ']');
	int r = environment(w, a);
	if (r)
		return r;
	jw_str(w, "cwd", a->cwd);
	if (!t->wanted)
		return 0;
	jw_bool(w, "tty", true);
	if (t->rows && t->cols) {
		jw_int(w, "rows", t->rows);
		jw_int(w, "cols", t->cols);
	}
	return 0;
}
