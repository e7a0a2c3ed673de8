#include "abctl/completion.h"
#include "abctl/verb.h"

#include <string.h>

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)cli, (void)args, (void)argc;
	if (strcmp(argv[0], "zsh") == 0)
		completion_zsh();
	else if (strcmp(argv[0], "fish") == 0)
		completion_fish();
	else
		completion_bash();
	return EXIT_DONE;
}

const struct verb cmd_completion = {
        .name = "completion",
        .synopsis = "(bash | zsh | fish)",
        .summary = "completion script of a shell",
        .words = "bash zsh fish",
        .min = 1,
        .max = 1,
        .run = run,
};
