#include "abctl/now.h"
#include "abctl/show.h"

static const struct column columns[] = {
        {"RUN", "runId", CELL_TEXT},
        {"STATUS", "state", CELL_TEXT},
        {"HARNESS", "harness", CELL_TEXT},
        {"USER", "userId", CELL_TEXT},
        {"GOAL", "goalId", CELL_TEXT},
        {"SINCE", "createdAt", CELL_TIME},
        {"CPU", "cpuMs", CELL_MS},
        {"MEMORY", "memoryPeakBytes", CELL_BYTES},
        {"PIDS", "pidsPeak", CELL_COUNT},
        {"JAIL", "jail", CELL_TEXT},
        {"PORTS", "ports", CELL_TEXT},
        {.heading = NULL},
};

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)args, (void)argc, (void)argv;
	auto_json struct json *all = NULL;
	int r = now_look(cli, 0, &all);
	return r ? r : show_table(cli, all, "runs", columns);
}

const struct verb cmd_ps = {
        .name = "ps",
        .synopsis = "",
        .summary = "runs and jails of now, with what they have used",
        .run = run,
};
