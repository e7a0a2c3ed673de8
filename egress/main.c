/*
 * agentbox-egress - the only way out of the jails.
 *
 *	agentbox-egress --build ID --uid N --gid N [--log-level L] [--ca-file FILE]
 *
 * Started by agentboxd as root, with the control socket at CHILD_CONTROL; gives
 * up root before it reads a byte (docs/EGRESS.md).
 */
#include "base/log.h"
#include "base/mem.h"
#include "egress/serve.h"
#include "proto/build.h"
#include "proto/children.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 100, EXIT_SYSTEM = 111 };

static bool id(const char *text, unsigned *ret)
{
	char *end;
	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	*ret = (unsigned)n;
	return !errno && *text && !*end && n > 0 && n < UINT_MAX;
}

static bool level(const char *text, enum log_level *ret)
{
	int found = log_level_by_name(text);
	if (found >= 0) {
		*ret = (enum log_level)found;
		return true;
	}
	return false;
}

static bool parse(int argc, char **argv, struct serve_options *o, enum log_level *ret_level)
{
	for (int i = 3; i < argc; i += 2) { /* after --build */
		const char *name = argv[i], *value = argv[i + 1];
		bool fine = false;
		if (!value)
			return false;
		if (strcmp(name, "--uid") == 0)
			fine = id(value, &o->uid);
		else if (strcmp(name, "--gid") == 0)
			fine = id(value, &o->gid);
		else if (strcmp(name, "--log-level") == 0)
			fine = level(value, ret_level);
		else if (strcmp(name, "--ca-file") == 0)
			fine = (o->ca_file = value) != NULL;
		if (!fine)
			return false;
	}
	return o->uid != 0 && o->gid != 0;
}

int main(int argc, char **argv)
{
	struct serve_options o = {.control = CHILD_CONTROL, .ca_file = SERVE_CA_FILE};
	struct err err;
	enum log_level most = LOG_LEVEL_INFO;
	log_init("agentbox-egress", most);
	int asked = build_check(argc, argv, &err);
	if (asked < 0)
		log_err("%s", err.text);
	if (asked != 0)
		return asked < 0 ? EXIT_USAGE : 0;
	bool fine = parse(argc, argv, &o, &most);
	log_init("agentbox-egress", most);
	if (!fine) {
		log_err("usage: agentbox-egress --build ID --uid N --gid N "
		        "[--log-level err|warn|info|debug] [--ca-file FILE]");
		return EXIT_USAGE;
	}
	if (serve_run(&o, &err) < 0) {
		log_err("%s", err.text);
		return EXIT_SYSTEM;
	}
	return 0;
}
