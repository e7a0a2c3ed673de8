/*
 * child_args.h - the command line of a program that agentboxd starts and that logs:
 *
 *	NAME --build ID --uid N --gid N [--log-level L] [--log-format F] [EXTRA VALUE]
 */
#ifndef PROTO_CHILD_ARGS_H
#define PROTO_CHILD_ARGS_H

#include "base/err.h"
#include "base/log.h"

#include <sys/types.h>

struct child_args {
	uid_t uid;
	gid_t gid;
	enum log_level level;
	enum log_format format;
	const char *extra; /* its value, borrowed from argv; as it was where it is not given */
};

/* `extra`: the name of one more option, or NULL.  1: go on; 0: only the build was asked for;
 * -EINVAL, or another build. */
MUST_USE int child_args_parse(
        int argc, char **argv, const char *extra, struct child_args *ret, struct err *e);

#endif
