#include "abctl/attach.h"
#include "abctl/command_body.h"
#include "abctl/fail.h"
#include "abctl/query.h"
#include "base/limits.h"
#include "base/mem.h"

#include <string.h>

struct exec_args {
	struct command_args command; /* first: COMMAND_OPTS counts from it */
};

static const struct opt opts[] = {COMMAND_OPTS, {.name = NULL}};

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	const struct exec_args *a = args;
	struct attach_terminal t = attach_terminal(a->command.tty);
	t.quiet = a->command.quiet;
	auto_free char *session = NULL;
	int r = query_session(cli, argv[0], &session);
	if (r)
		return r;
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/sessions/");
	url_encode(&path, session);
	buf_puts(&path, "/exec");
	auto_buf struct buf body = BUF_INIT(4 * (size_t)LIMIT_EXEC_BLOB);
	struct jw w = JW_INIT(&body);
	jw_open(&w, NULL, '{');
	r = command_body(&w, &a->command, &t, argc - 1, argv + 1);
	if (r)
		return r;
	jw_close(&w, '}');
	if (body.failed || path.failed)
		return fail_usage(
		        "command and environment are larger than %d bytes", LIMIT_EXEC_BLOB);
	return attach_run(cli, path.p, &body, &t, argv[1]);
}

const struct verb cmd_exec = {
        .name = "exec",
        .synopsis = "SESSION [OPTIONS] -- ARGV...",
        .summary = "run a command in a session's jail",
        .help = "SESSION is an id or USER/GOAL. A session without a live jail gets one with its\n"
                "workspace. Streams, signals and exit codes as with `abctl jail`. The -- may be "
                "left\n"
                "out when the command has no options of its own.\n",
        .opts = opts,
        .args_size = sizeof(struct exec_args),
        .min = 2,
        .max = LIMIT_EXEC_ARGS,
        .run = run,
};
