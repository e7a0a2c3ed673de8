/*
 * arguments.h - the supervisor's command line, as agentboxd writes it
 * (proto/children.h).
 */
#ifndef SUPERVISOR_ARGUMENTS_H
#define SUPERVISOR_ARGUMENTS_H

#include "base/err.h"
#include "base/log.h"

#include <sys/types.h>

struct arguments {
	uid_t uid;
	gid_t gid;
	enum log_level log_level;
	enum log_format log_format;
};

MUST_USE int arguments_parse(int argc, char **argv, struct arguments *ret, struct err *e);

#endif
