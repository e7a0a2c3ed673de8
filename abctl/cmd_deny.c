#include "abctl/say.h"

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)args;
	return say_permission(cli, argv[0], argc > 1 ? argv[1] : NULL, "deny");
}

const struct verb cmd_deny = {
        .name = "deny",
        .synopsis = "RUN [PERMISSION]",
        .summary = "refuse what the agent of a run has asked for",
        .help = "Without PERMISSION: the only one that is open. The run goes on: the agent is "
                "told\n"
                "so, and may try something else.\n",
        .min = 1,
        .max = 2,
        .run = run,
};
