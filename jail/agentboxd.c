/*
 * agentboxd - the root process of agentbox.
 *
 * It opens the control socket, starts the processes that talk to strangers, and
 * makes jails when the supervisor asks within what root's policies allow.  It
 * parses nothing but its own command line and fixed-size structs.
 *
 *	agentboxd (root)
 *	 |- agentbox-supervisor (own uid)	HTTP, harnesses, agents' output
 *	 |- agentbox-egress (own uid)		the jails' only way out
 *	 |- agentbox-listener (own uid)		clients of TCP, where root wants them
 *	 |- agentbox-policyc (own uid)		for a moment, at start and reload
 *	 `- agentbox-init (a leased uid)	PID 1 of each jail, and the agent below it
 */
#include "base/log.h"
#include "base/version.h"
#include "jail/daemon.h"
#include "jail/options.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { EXIT_USAGE = 100, EXIT_SYSTEM = 111 };

static int print(const char *text)
{
	return fputs(text, stdout) == EOF || fflush(stdout) == EOF ? EXIT_SYSTEM : 0;
}

/* A descriptor below 3 that is closed would be given to the first thing we open. */
static int fill_stdio(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	static struct daemon daemon; /* too large for a stack, and there is one */
	struct options options;
	struct err e = {0};
	if (fill_stdio() < 0)
		return EXIT_SYSTEM;
	log_init("agentboxd", LOG_LEVEL_INFO);
	int action = options_parse(argc, argv, &options, &e);
	if (action < 0) {
		log_err("%s (try --help)", e.text);
		return EXIT_USAGE;
	}
	log_init("agentboxd", options.log_level);
	int r = 0;
	if (action == OPTIONS_HELP) {
		r = print(options_help);
	} else if (action == OPTIONS_VERSION) {
		r = print("agentboxd " AGENTBOX_VERSION "\n");
	} else if (action == OPTIONS_CHECK) {
		r = daemon_check(&daemon, &options, &e);
		if (r < 0) {
			log_err("%s", e.text);
			r = EXIT_SYSTEM;
		}
	} else {
		r = daemon_open(&daemon, &options, &e);
		if (r == 0) {
			r = daemon_run(&daemon, &e);
			daemon_close(&daemon);
		}
		if (r < 0) {
			log_err("%s", e.text);
			r = EXIT_SYSTEM;
		}
	}
	options_done(&options);
	return r;
}
