#include "abctl/say.h"
#include "base/mem.h"

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)args, (void)argc;
	auto_free char *text = NULL;
	size_t n = 0;
	int r = say_text(argv[1], &text, &n);
	return r ? r : say_message(cli, argv[0], text, n);
}

const struct verb cmd_send = {
        .name = "send",
        .synopsis = "RUN (TEXT | -)",
        .summary = "one more message to the agent of a run",
        .help = "The agent takes it up when it is ready to: after the step it is at, or when its\n"
                "answer is done. '-' reads the message from stdin. An agent that hears nothing\n"
                "while it works is told with the next run of the session instead.\n",
        .min = 2,
        .max = 2,
        .run = run,
};
