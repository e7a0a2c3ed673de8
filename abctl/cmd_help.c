#include "abctl/fail.h"
#include "abctl/verb.h"

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)cli, (void)args;
	if (argc == 0) {
		verb_overview();
		return EXIT_DONE;
	}
	const struct verb *v = verb_find(argv[0]);
	if (!v)
		return verb_unknown(argv[0]);
	verb_help(v);
	return EXIT_DONE;
}

const struct verb cmd_help = {
        .name = "help",
        .synopsis = "[VERB]",
        .summary = "this overview, or the help of one verb",
        .max = 1,
        .run = run,
};
