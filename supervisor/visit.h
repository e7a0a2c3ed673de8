/*
 * visit.h - a file worker in the workspace of a session, whatever goes on in that.
 *
 * While a jail has the workspace - a run's, a command's, one whose agent waits for another run -
 * the worker is in there. Else a jail is made for it, of the policy of the session's latest run, in
 * which no program is started; runs of the session wait until it is gone, commands join it.
 * A session between two jails is waited for.
 *
 * Order: visit_begin; `here` is called once, on the loop; visit_end, at any time.
 */
#ifndef SUPERVISOR_VISIT_H
#define SUPERVISOR_VISIT_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct session;
struct shared_jail;
struct visit;
struct visits;

struct visits *visits_new(struct daemon *d);
void visits_free(struct visits *v);

/* worker: its socket (files.h), taken by the callee; or -1 with *e. */
typedef void visit_here_fn(void *ctx, int worker, const struct err *e);
/* Returns owned, until visit_end; NULL with *e: -ENOENT no such session, -EAGAIN,
 * -ESHUTDOWN. */
struct visit *visit_begin(
        struct visits *v, const char *session, visit_here_fn *here, void *ctx, struct err *e);
void visit_end(struct visit *x); /* NULL is fine */

enum {
	VISIT_PASSES_MS =
	        10000,     /* what passes is waited for so long, by requests that nobody watches */
	VISIT_LOOK_MS = 5, /* and looked at so often */
};
/* What has the session goes by itself, and no client can end it: files are looked at, it is being
 * made or prepared, or a jail is ending. */
bool visit_passes(struct daemon *d, const char *session);

/* A jail that has the workspace of `held` (runs_keep_session) for itself: that is let go when the
 * jail is given back, or was never made.  Returns a reference. */
struct shared_jail *visit_jail(struct daemon *d, struct session *held, int64_t wall_ms);
/* It was made. */
void visit_jail_made(struct shared_jail *x, struct session *held, uint64_t jail);

#endif
