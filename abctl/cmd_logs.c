#include "abctl/fail.h"
#include "abctl/follow.h"
#include "abctl/raw.h"
#include "base/id.h"

struct logs_args {
	bool follow, raw;
	int64_t from;
};

static const struct opt opts[] = {
        {"follow", 'f', OPT_FLAG, offsetof(struct logs_args, follow), NULL,
                "wait for what comes, until the run is over"},
        {"from", 0, OPT_NUMBER, offsetof(struct logs_args, from), "N", "begin with event number N"},
        {"raw", 0, OPT_FLAG, offsetof(struct logs_args, raw), NULL,
                "what the agent printed, as it came: its stdout and stderr on ours"},
        {.name = NULL},
};

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)argc;
	const struct logs_args *a = args;
	/* It becomes part of a path. */
	if (!id_valid(argv[0], "run"))
		return fail_usage("'%s' is no run id (see `abctl runs`)", argv[0]);
	if (a->raw && a->from)
		return fail_usage("--raw is not of events: it has no --from");
	if (a->raw)
		return raw_run(cli, argv[0], a->follow);
	struct follow_options o = {
	        .run = argv[0], .from = a->from, .live = a->follow, .lines = cli->json};
	int code = follow_run(cli, &o);
	/* Showing a failed run has not failed. */
	return code == EXIT_FAILED ? EXIT_DONE : code;
}

const struct verb cmd_logs = {
        .name = "logs",
        .synopsis = "RUN [-f] [--from N] [--raw]",
        .summary = "events of a run",
        .help = "With --raw the bytes of its agent instead, before anything was made of them: a\n"
                "protocol, mostly. They are kept with the session, of each run the first MiB and\n"
                "the last 15, of all together 512 MiB. With --json as the API gives them.\n",
        .opts = opts,
        .args_size = sizeof(struct logs_args),
        .min = 1,
        .max = 1,
        .run = run,
};
