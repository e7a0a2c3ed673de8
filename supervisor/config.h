/*
 * config.h - the supervisor's command line, as agentboxd writes it
 * (proto/children.h).
 */
#ifndef SUPERVISOR_CONFIG_H
#define SUPERVISOR_CONFIG_H

#include "base/err.h"
#include "base/log.h"

#include <sys/types.h>

struct config {
	uid_t uid;
	gid_t gid;
	enum log_level log_level;
};

MUST_USE int config_parse(int argc, char **argv, struct config *ret, struct err *e);

#endif
