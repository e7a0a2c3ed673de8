/*
 * later.h - requests for a jail whose session's files are not ready yet.
 *
 * They are copied into an image, counted for a project, or still being
 * unmounted; agentboxd does not stand still for that.  The request is kept with
 * its descriptor, and asked again when the work has ended; its supervisor sees one
 * reply that takes a while.
 */
#ifndef JAIL_LATER_H
#define JAIL_LATER_H

#include "base/err.h"
#include "base/list.h"
#include "jail/disks.h"
#include "jail/poller.h"
#include "proto/jail.h"

#include <stdbool.h>

struct later; /* one request */

struct laters {
	struct poller *poller; /* borrowed */
	struct list waiting;   /* of struct later */
	unsigned count;        /* of them */
	/* Asks again; msg is valid for the call, exec_fd is taken.  Then it may be asked what
	 * became of the work: laters_failed. */
	void (*again)(void *ctx, const struct jail_make *msg, int exec_fd);
	uint64_t (*promised)(void *ctx); /* as disks_ask.promised */
	const struct disks *disks;       /* borrowed */
	void *ctx;
	struct later *asking; /* the one whose `again` is running */
};

void laters_init(struct laters *l, struct poller *p, const struct disks *d);
void laters_drop(struct laters *l); /* kills the work, forgets the requests */

/* Takes exec_fd and `job`.  0; else nothing waits and the job is undone.  Work is done once for a
 * request: were it never enough, it would be done for ever. */
MUST_USE int laters_add(struct laters *l, const struct jail_make *m, int exec_fd,
        struct disks_job *job, struct err *e);
/* A request for this session waits, other than the one that is asking again. */
bool laters_has(const struct laters *l, const char *session);
/* As many wait as there can be jails; the one that is asking again is not counted. */
bool laters_full(const struct laters *l);
/* From within `again`: why the work failed, NULL: it did not.  What is then added waits with that
 * answer. */
const struct err *laters_failed(const struct laters *l);

#endif
