#include "abctl/fail.h"
#include "abctl/local.h"
#include "abctl/query.h"
#include "abctl/show.h"
#include "base/mem.h"

#include <string.h>

static const struct column columns[] = {
        {"HARNESS", "name", CELL_TEXT},
        {"BACKEND", "backend", CELL_TEXT},
        {"POLICY", "policy", CELL_TEXT},
        {"DESCRIPTION", "description", CELL_TEXT},
        {"ERROR", "error", CELL_TEXT},
        {.heading = NULL},
};

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)args;
	if (strcmp(argv[0], "ls") == 0 && argc == 1)
		return show_list(cli, "/v1/harnesses", "harnesses", columns);
	if (strcmp(argv[0], "lint") == 0)
		return local_lint(cli, "harness", argc - 1, argv + 1);
	if (strcmp(argv[0], "show") != 0 || argc != 2)
		return fail_usage("abctl harness (ls | show NAME | lint FILE...)");
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/harnesses/");
	url_encode(&path, argv[1]);
	return show_object(cli, path.p);
}

const struct verb cmd_harness = {
        .name = "harness",
        .synopsis = "(ls | show NAME | lint FILE...)",
        .summary = "task types; check a harness file",
        .help = "`lint` reads files of yours and needs no daemon; it exits 1 when one is wrong, "
                "also when it\nasks for what its agent, of those that came with this abctl, "
                "cannot do. What only the daemon\nknows (is there such a policy, an agent of "
                "your own) is in the ERROR column of `ls`.\n",
        .words = "ls show lint",
        .min = 1,
        .max = 62,
        .run = run,
};
