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
        .help = "Running runs go on with what they began with, also under new binaries, that of\n"
                "agentboxd included; commands of `abctl exec` and `abctl jail` end with the old\n"
                "supervisor. A file that is wrong keeps the policies in use and is named; a new\n"
                "agentboxd that cannot take over leaves everything as it is. One that can does\n"
                "so a moment later: `abctl version` tells since when it runs.\n",
        .run = run,
};
