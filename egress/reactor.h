/*
 * reactor.h - the one event loop of agentbox-egress: epoll, a few timers, burials.
 *
 * Readiness and not completion, because libcurl and c-ares both hand out
 * sockets to be watched and read them themselves: on a ring each of their
 * changes of mind would be a cancel and a new poll (docs/EGRESS.md).
 *
 * A watch or a timer is embedded in its owner.  An owner is never freed inside
 * a turn: it takes its watches off, puts its corpse on the loop, and is buried
 * when every event of the turn has been given out; so an event that was already
 * fetched finds memory that is still its own and a watch that is off.
 */
#ifndef EGRESS_REACTOR_H
#define EGRESS_REACTOR_H

#include "base/err.h"
#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct reactor; /* opaque */

struct watch {
	int fd;          /* borrowed: until reactor_unwatch; -1 when off */
	uint32_t events; /* EPOLL* asked for; 0 leaves errors and hang-ups */
	void (*ready)(struct watch *w, uint32_t events);
};

struct timer {
	struct list link; /* in reactor.timers while armed */
	int64_t due_ms;
	void (*fire)(struct timer *t); /* off when called; may arm itself again */
};

struct corpse {
	struct list link; /* in reactor.corpses once handed over */
	void (*bury)(struct corpse *c);
};

/* ---- life ---- */
struct reactor *reactor_new(struct err *e);
void reactor_free(struct reactor *r);              /* buries what is left */
int reactor_run(struct reactor *r, struct err *e); /* until reactor_stop */
void reactor_stop(struct reactor *r);

/* ---- use ---- */
MUST_USE int reactor_watch(struct reactor *r, struct watch *w, int fd, uint32_t events);
void reactor_set(struct reactor *r, struct watch *w, uint32_t events); /* no call when unchanged */
void reactor_unwatch(struct reactor *r, struct watch *w); /* before fd is closed; off is fine */

/* Few at a time (one each for curl's handles, c-ares and the tick), so they are a plain list. */
void reactor_arm(struct reactor *r, struct timer *t, int64_t in_ms);
void reactor_disarm(struct timer *t);

void reactor_bury(struct reactor *r, struct corpse *c);
void reactor_bury_all(struct reactor *r); /* after reactor_run: what ended since the last turn */

#endif
