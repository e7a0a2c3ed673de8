/*
 * abctl - the command line of agentbox.
 */
#include "abctl/fail.h"
#include "abctl/skew.h"
#include "abctl/verb.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Started without one of 0, 1, 2, the next descriptor we open would be taken for it. */
static void fill_stdio(void)
{
	int fd;
	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= 2);
	if (fd > 2)
		close(fd);
}

int main(int argc, char **argv)
{
	fill_stdio();
	const char *socket = getenv("AGENTBOX_SOCKET");
	const char *key = getenv("AGENTBOX_KEY_FILE"), *url = getenv("AGENTBOX_URL");
	struct cli cli = {
	        .peer.socket = socket && *socket ? socket : "/run/agentbox/agentbox.sock",
	        .peer.url = url && *url ? url : NULL,
	        .peer.key_file = key && *key ? key : NULL,
	        .peer.told = skew_note,
	};
	const struct opt *tables[] = {verb_common, NULL};
	void *dests[] = {&cli};
	struct err e = {0};
	struct opt_result r;
	signal(SIGPIPE, SIG_IGN); /* a closed stdout is an error of write */
	if (opts_parse(tables, dests, true, argc - 1, argv + 1, &r, &e) < 0)
		return fail_usage("%s", e.text);
	if (r.help) {
		verb_overview();
		return EXIT_DONE;
	}
	if (r.argc == 0) {
		verb_overview();
		return fail_usage("no verb given");
	}
	const struct verb *v = verb_find(argv[1]);
	if (!v)
		return verb_unknown(argv[1]);
	int code = verb_run(&cli, v, r.argc - 1, argv + 2);
	if (fflush(stdout) != 0 || ferror(stdout))
		return fail_system("stdout: writing failed");
	return code;
}
