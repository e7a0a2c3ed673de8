#include "abctl/fail.h"
#include "abctl/say.h"

struct approve_args {
	bool once, always;
};

static const struct opt opts[] = {
        {"once", 0, OPT_FLAG, offsetof(struct approve_args, once), NULL,
                "this call alone (default)"},
        {"always", 0, OPT_FLAG, offsetof(struct approve_args, always), NULL,
                "and every further call of this tool in this run"},
        {.name = NULL},
};

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	const struct approve_args *a = args;
	if (a->once && a->always)
		return fail_usage("--once and --always exclude each other");
	return say_permission(
	        cli, argv[0], argc > 1 ? argv[1] : NULL, a->always ? "always" : "once");
}

const struct verb cmd_approve = {
        .name = "approve",
        .synopsis = "RUN [PERMISSION] [--once | --always]",
        .summary = "allow what the agent of a run has asked for",
        .help = "Without PERMISSION: the only one that is open. `abctl show RUN` lists them.\n",
        .opts = opts,
        .args_size = sizeof(struct approve_args),
        .min = 1,
        .max = 2,
        .run = run,
};
