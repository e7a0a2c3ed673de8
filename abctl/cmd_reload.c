#include "abctl/query.h"

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)args, (void)argc, (void)argv;
	struct client_request req = {.method = "POST", .path = "/v1/reload"};
	return query_say(cli, &req, "reloaded");
}

const struct verb cmd_reload = {
        .name = "reload",
        .synopsis = "",
        .summary = "read policies and configuration again, use new binaries",
        .help = "Running runs go on with what they began with, also under a new binary of the\n"
                "supervisor; commands of `abctl exec` and `abctl jail` end with the old one. A\n"
                "file that is wrong keeps the policies in use and is named.\n",
        .run = run,
};
