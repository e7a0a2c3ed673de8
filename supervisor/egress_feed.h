/*
 * egress_feed.h - the latest of what any jail sent out or was refused, for who
 * watches all of them.
 *
 * Events of runs are in the logs of their sessions, and stay there; commands in
 * jails of their own have no log.  This is a ring of the last lines in memory.  A
 * follower is a position in it: who is slow finds that lines are missing, and how
 * many.
 */
#ifndef SUPERVISOR_EGRESS_FEED_H
#define SUPERVISOR_EGRESS_FEED_H

#include "base/list.h"

#include <stddef.h>
#include <stdint.h>

enum { EGRESS_FEED_LINES = 1024 };

struct egress_feed;

struct egress_follower {
	struct list link; /* in feed.followers */
	uint64_t next;    /* number of the line it has not seen */
	void (*wake)(struct egress_follower *f);
};

struct egress_feed *egress_feed_new(void);

/* A line of JSON without its newline.  Wakes the followers. */
void egress_feed_put(struct egress_feed *f, const char *line, size_t n);

/* `wake` is set by the caller, who keeps it until egress_feed_leave.  Begins with the oldest line
 * that is kept. */
void egress_feed_follow(struct egress_feed *f, struct egress_follower *w);
void egress_feed_leave(struct egress_follower *w);
/* The next line, borrowed until the next put, or NULL; *ret_lost: how many were missed before it.
 */
const char *egress_feed_line(
        const struct egress_feed *f, struct egress_follower *w, uint64_t *ret_lost);

#endif
