#include "abctl/attach.h"
#include "abctl/command_body.h"
#include "abctl/fail.h"
#include "abctl/pairs.h"
#include "base/limits.h"

struct jail_args {
	struct command_args command; /* first: COMMAND_OPTS counts from it */
	const char *policy, *agent, *user;
	struct opt_list binds, limits;
};

static const struct opt opts[] = {
        {"policy", 0, OPT_TEXT, offsetof(struct jail_args, policy), "NAME",
                "the policy of root to jail it under (default: root's default_policy)"},
        {"agent", 0, OPT_TEXT, offsetof(struct jail_args, agent), "NAME",
                "with an installed agent at /opt/agent, and its environment"},
        {"bind", 0, OPT_LIST, offsetof(struct jail_args, binds), "HOST:JAIL[:rw]",
                "show a directory of the host, of those the policy lists"},
        {"user", 0, OPT_TEXT, offsetof(struct jail_args, user), "NAME",
                "'agent' (the default) or 'root' of the jail"},
        {"limit", 0, OPT_LIST, offsetof(struct jail_args, limits), "K=V",
                "tighten a limit: memory=512M, pids=64, cpus=1, wall=30s ..."},
        COMMAND_OPTS,
        {.name = NULL},
};

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	const struct jail_args *a = args;
	struct attach_terminal t = attach_terminal(a->command.tty);
	t.quiet = a->command.quiet;
	/* The server takes LIMIT_EXEC_BLOB, and escapes may double it. */
	auto_buf struct buf body = BUF_INIT(4 * (size_t)LIMIT_EXEC_BLOB);
	struct jw w = JW_INIT(&body);
	jw_open(&w, NULL, '{');
	int r = command_body(&w, &a->command, &t, argc, argv);
	if (r)
		return r;
	jw_str(&w, "policy", a->policy);
	jw_str(&w, "agent", a->agent);
	jw_str(&w, "user", a->user);
	if (a->binds.n) {
		jw_open(&w, "binds", '[');
		for (int i = 0; i < a->binds.n; i++)
			jw_str(&w, NULL, a->binds.v[i]);
		jw_close(&w, ']');
	}
	r = pairs_object(&w, "limits", "limit", &a->limits);
	if (r)
		return r;
	jw_close(&w, '}');
	if (body.failed)
		return fail_usage(
		        "command and environment are larger than %d bytes", LIMIT_EXEC_BLOB);
	return attach_run(cli, "/v1/jails", &body, &t, argv[0]);
}

const struct verb cmd_jail = {
        .name = "jail",
        .synopsis = "[OPTIONS] -- ARGV...",
        .summary = "run one command in a fresh jail",
        .help = "The jail is made for this command under a policy of root and is gone after it:\n"
                "the host's /usr read-only, an empty writable /workspace, no network but what the\n"
                "policy lets out. stdin, stdout and stderr are connected, signals are forwarded, "
                "and\n"
                "the exit code is the command's own (128 + N for signal N). Codes of abctl itself\n"
                "come with a last line 'abctl: usage:' or 'abctl: system:' on stderr.\n",
        .opts = opts,
        .args_size = sizeof(struct jail_args),
        .command = true,
        .min = 1,
        .max = LIMIT_EXEC_ARGS,
        .run = run,
};
