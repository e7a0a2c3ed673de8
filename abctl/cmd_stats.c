#include "abctl/show.h"

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)args, (void)argc, (void)argv;
	return show_object(cli, "/v1/stats");
}

const struct verb cmd_stats = {
        .name = "stats",
        .synopsis = "",
        .summary = "counters of the daemon",
        .run = run,
};
