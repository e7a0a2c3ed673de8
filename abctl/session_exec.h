/*
 * session_exec.h - a session for a verb of abctl's, and a command in it with this process's stdio.
 */
#ifndef ABCTL_SESSION_EXEC_H
#define ABCTL_SESSION_EXEC_H

#include "abctl/verb.h"
#include "base/err.h"

#include <stdbool.h>

/* The session of the pair, made where there is none.  0 and its id (owned), or an exit code after
 * having said why. */
MUST_USE int session_make(const struct cli *cli, const char *user, const char *goal, char **ret);

struct session_command {
	const char *const *argv;       /* NULL-ended */
	const char *policy, *snapshot; /* as of the API; NULL: not said */
	const char *name;              /* for messages */
	bool quiet;                    /* what is refused to its jail is not told */
};
/* Its exit code, or ours after having said why. */
MUST_USE int session_exec(
        const struct cli *cli, const char *session, const struct session_command *c);

#endif
