#include "abctl/query.h"

#include <stdio.h>

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)args, (void)argc;
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/runs/");
	query_encode(&path, argv[0]);
	struct client_request req = {.method = "DELETE", .path = path.p};
	auto_json struct json *j = NULL;
	int r = query_send(cli, &req, &j);
	if (r)
		return r;
	if (cli->json)
		query_print(j);
	else
		printf("cancelling %s\n", argv[0]);
	return EXIT_DONE;
}

const struct verb cmd_cancel = {
        .name = "cancel",
        .synopsis = "RUN",
        .summary = "cancel a run",
        .help = "Asks the agent to stop, then ends its jail. Returns at once;\n"
                "`abctl logs -f RUN` shows the end.\n",
        .min = 1,
        .max = 1,
        .run = run,
};
