#include "abctl/query.h"

#include <stdio.h>

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)args, (void)argc, (void)argv;
	struct client_request req = {.method = "POST", .path = "/v1/reload"};
	auto_json struct json *j = NULL;
	int r = query_send(cli, &req, &j);
	if (r)
		return r;
	if (cli->json)
		query_print(j);
	else
		puts("reloaded");
	return EXIT_DONE;
}

const struct verb cmd_reload = {
        .name = "reload",
        .synopsis = "",
        .summary = "read policies, configuration and harnesses again",
        .help = "Running runs keep what they began with. A file that is wrong keeps the policies "
                "in\n"
                "use and is named.\n",
        .run = run,
};
