/*
 * agentbox-listener - where the API is reached over TCP.
 *
 *	agentbox-listener --build ID --uid N --gid N [--log-level L] [--log-format F]
 *
 * Started by agentboxd as root, with the control socket at CHILD_CONTROL and the way to
 * the supervisor behind it; gives up root before it reads a byte.
 */
#include "base/log.h"
#include "listener/serve.h"
#include "proto/child_args.h"
#include "proto/children.h"
#include "proto/listener.h"

#include <signal.h>

enum { EXIT_USAGE = 100, EXIT_SYSTEM = 111 };

int main(int argc, char **argv)
{
	static const char name[] = "agentbox-listener";
	struct child_args a = {.level = LOG_LEVEL_INFO};
	struct err err;
	log_init(name, a.level);
	signal(SIGPIPE, SIG_IGN);
	int r = child_args_parse(argc, argv, NULL, &a, &err);
	if (r == 0)
		return 0;
	log_init(name, a.level);
	log_use(a.format, 0);
	const struct serve_options o = {
	        .control = CHILD_CONTROL, .outlet = LISTENER_OUTLET, .uid = a.uid, .gid = a.gid};
	if (r > 0 && serve_run(&o, &err) == 0)
		return 0;
	log_err("%s", err.text);
	return r < 0 ? EXIT_USAGE : EXIT_SYSTEM;
}
