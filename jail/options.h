/*
 * options.h - agentboxd's command line: a fixed list of options with one
 * argument each, as `--name VALUE` or `--name=VALUE`.
 *
 * Paths are made absolute here, so that nothing later depends on the working
 * directory.
 */
#ifndef JAIL_OPTIONS_H
#define JAIL_OPTIONS_H

#include "base/err.h"
#include "base/log.h"

#include <stdbool.h>

struct options {
	/* owned, absolute; the first three have defaults, NULL where an option has none */
	char *config; /* agentboxd.yaml; may be missing unless named */
	char *state;
	char *socket;
	char *share;   /* NULL: found beside the binary */
	char *agents;  /* directory of agents' files; NULL: <state>/agents */
	char *libexec; /* NULL: programs are found beside the binary */
	bool config_named, socket_named;
	enum log_level log_level;
	char *const *argv; /* borrowed: as it came */
	int handover;      /* OPTIONS_CHECK: the descriptor to look at */
};

enum options_action { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_CHECK };

/* Returns enum options_action, or -EINVAL with *e (exit 100). */
MUST_USE int options_parse(int argc, char *const *argv, struct options *ret, struct err *e);
void options_done(struct options *o);

extern const char options_help[];

#endif
