/*
 * prewarm.h - a session is prepared for its next run of a harness: its workspace is made and seeded
 * as that run would do it, and where the harness has `warm`, an agent waits in it (early.h).
 *
 * Meanwhile the session is held as by a command: its runs wait, and find what is there.  Nothing of
 * it is kept but what a run would leave, so that after the death of a supervisor the next run does
 * what is not done, and a jail that is left is ended as any that is nobody's.
 */
#ifndef SUPERVISOR_PREWARM_H
#define SUPERVISOR_PREWARM_H

#include "base/err.h"

#include <stdbool.h>

struct daemon;

struct prewarm_said {
	bool agent;      /* one waits, or is to */
	const char *why; /* static: why none; NULL otherwise */
};

typedef void prewarm_done_fn(void *ctx, int rc, const struct err *e);
/* 1: all is there already; 0: done() will tell, on the loop.  -ENOENT, -ENOEXEC, -ENOPKG, -EINVAL,
 * -ENOSPC, -ESHUTDOWN; -EBUSY while something else has the session; -EAGAIN. */
MUST_USE int prewarm_begin(struct daemon *d, const char *session, const char *harness,
        prewarm_done_fn *done, void *ctx, struct prewarm_said *ret, struct err *e);

#endif
