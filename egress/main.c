/*
 * agentbox-egress - the only way out of the jails.
 *
 *	agentbox-egress --build ID --uid N --gid N [--log-level L] [--log-format F] [--ca-file FILE]
 *
 * Started by agentboxd as root, with the control socket at CHILD_CONTROL; gives
 * up root before it reads a byte (docs/EGRESS.md).
 */
#include "base/log.h"
#include "egress/serve.h"
#include "proto/child_args.h"
#include "proto/children.h"

enum { EXIT_USAGE = 100, EXIT_SYSTEM = 111 };

int main(int argc, char **argv)
{
	static const char name[] = "agentbox-egress";
	struct child_args a = {.level = LOG_LEVEL_INFO, .extra = SERVE_CA_FILE};
	struct err err;
	log_init(name, a.level);
	int r = child_args_parse(argc, argv, "--ca-file", &a, &err);
	if (r == 0)
		return 0;
	log_init(name, a.level);
	log_use(a.format, 0);
	const struct serve_options o = {
	        .control = CHILD_CONTROL, .uid = a.uid, .gid = a.gid, .ca_file = a.extra};
	if (r > 0)
		return serve_run(&o, &err) == 0 ? 0 : EXIT_SYSTEM;
	log_err("%s", err.text);
	return EXIT_USAGE;
}
