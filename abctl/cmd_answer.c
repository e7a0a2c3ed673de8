#include "abctl/say.h"
#include "base/mem.h"

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)args;
	auto_free char *text = NULL;
	size_t n = 0;
	int r = say_text(argv[argc - 1], &text, &n);
	return r ? r : say_reply(cli, argv[0], argc > 2 ? argv[1] : NULL, text, n);
}

const struct verb cmd_answer = {
        .name = "answer",
        .synopsis = "RUN [QUESTION] (TEXT | -)",
        .summary = "answer a question of the agent of a run",
        .help = "Without QUESTION: the only one that is open. '-' reads the answer from stdin.\n",
        .min = 2,
        .max = 3,
        .run = run,
};
