#include "abctl/query.h"

struct cancel_args {
	bool now;
};

static const struct opt opts[] = {
        {"now", 0, OPT_FLAG, offsetof(struct cancel_args, now), NULL,
                "end it without asking the agent first"},
        {.name = NULL},
};

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)argc;
	const struct cancel_args *a = args;
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/runs/");
	url_encode(&path, argv[0]);
	if (a->now)
		buf_puts(&path, "?now=1");
	struct client_request req = {.method = "DELETE", .path = path.p};
	return query_say(cli, &req, "cancelling %s", argv[0]);
}

const struct verb cmd_cancel = {
        .name = "cancel",
        .synopsis = "RUN [--now]",
        .summary = "cancel a run",
        .help = "Asks the agent to stop and gives it three seconds, then ends its jail.\n"
                "Returns at once; `abctl logs -f RUN` shows the end.\n",
        .opts = opts,
        .args_size = sizeof(struct cancel_args),
        .min = 1,
        .max = 1,
        .run = run,
};
