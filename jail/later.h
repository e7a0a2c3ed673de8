/*
 * later.h - requests for a jail whose session's files are not ready yet.
 *
 * They are being opened, copied into an image, counted for a project, or still
 * unmounted; agentboxd does not stand still for that.  The request is kept with
 * its descriptor, and asked again when the files are there or cannot be; its supervisor sees
 * one reply that takes a while.
 */
#ifndef JAIL_LATER_H
#define JAIL_LATER_H

#include "base/err.h"
#include "base/list.h"
#include "jail/closer.h"
#include "jail/disks.h"
#include "jail/poller.h"
#include "jail/reaper.h"
#include "proto/jail.h"

#include <stdbool.h>

struct later; /* one request */

struct laters {
	struct poller *poller; /* borrowed */
	struct list waiting;   /* of struct later */
	unsigned count;        /* of them */
	/* Asks again; msg is valid for the call, exec_fd is taken.  Then laters_outcome tells what
	 * became of the files. */
	void (*again)(void *ctx, const struct jail_make *msg, int exec_fd);
	uint64_t (*promised)(void *ctx);              /* as disks_ask.promised */
	bool (*used)(void *ctx, const char *session); /* something lives in a jail of it */
	const struct disks *disks;                    /* borrowed, as the next two */
	struct reaper *reaper;
	const struct closer *closer; /* NULL until set */
	void *ctx;
	struct later *asking; /* the one whose `again` is running */
};

void laters_init(struct laters *l, struct poller *p, const struct disks *d, struct reaper *r);
void laters_drop(struct laters *l); /* kills the work, forgets the requests */

/* Takes exec_fd and `job`, which is under way.  0; else nothing waits and the job is undone. */
MUST_USE int laters_add(struct laters *l, const struct jail_make *m, int exec_fd,
        struct disks_job *job, struct err *e);
/* A request for this session waits. */
bool laters_has(const struct laters *l, const char *session);
/* As many wait as there can be jails. */
bool laters_full(const struct laters *l);
/* Some are copied or counted, which may take long: how many. */
unsigned laters_working(const struct laters *l);
/* Policies are read again: a request goes on under the policy of its name if that is as it was;
 * else it will be asked again with its old number, and refused. */
void laters_follow(struct laters *l, const struct policy_set *old, const struct policy_set *now);
/* From within `again`: 1 with *ret (owned), or -errno with the reason.  0: nobody asks again. */
MUST_USE int laters_outcome(struct laters *l, struct disks_opened *ret, struct err *e);

#endif
