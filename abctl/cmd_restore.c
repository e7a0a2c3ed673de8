#include "abctl/fail.h"
#include "abctl/restore.h"
#include "abctl/verb.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct restore_args {
	const char *state;
};

static const struct opt opts[] = {
        {"state", 0, OPT_TEXT, offsetof(struct restore_args, state), "DIR",
                "the state directory (/var/lib/agentbox)"},
        {.name = NULL},
};

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)argc;
	const struct restore_args *a = args;
	const char *state = a->state ? a->state : "/var/lib/agentbox";
	struct err e = {0};
	if (geteuid() != 0)
		return fail_usage("only root can restore a state");
	bool from_stdin = strcmp(argv[0], "-") == 0;
	int fd = from_stdin ? STDIN_FILENO : open(argv[0], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fail_usage("%s: %s", argv[0], strerror(errno));
	int r = restore_state(fd, state, &e);
	if (!from_stdin)
		close(fd);
	if (r == -EBADMSG)
		return fail_usage("%s: %s", from_stdin ? "stdin" : argv[0], e.text);
	if (r == -EBUSY || r == -ENOTEMPTY)
		return fail_usage("%s: %s", state, e.text);
	if (r < 0)
		return fail_system("%s: %s", state, e.text);
	if (cli->json)
		puts("{\"restored\":true}");
	else
		printf("restored; agentboxd --state %s takes it up\n", state);
	return EXIT_DONE;
}

const struct verb cmd_restore = {
        .name = "restore",
        .synopsis = "FILE [--state DIR]",
        .summary = "bring a backup back into an empty state directory",
        .help = "FILE is of `abctl backup`; '-' is stdin. A state directory that is in use, or "
                "holds a\n"
                "state, is refused; so is an archive that is not whole, and then nothing is "
                "changed.\n"
                "Workspaces that are in DIR/sessions stay. A state of an older agentbox is "
                "brought\n"
                "up to date when agentboxd starts; one of a newer it refuses.\n",
        .opts = opts,
        .args_size = sizeof(struct restore_args),
        .min = 1,
        .max = 1,
        .run = run,
};
