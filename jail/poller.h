/*
 * poller.h - agentboxd's loop: one epoll, descriptors that call back, alarms.
 *
 * One event is taken at a time, so a callback may remove or free any other
 * watch: there is no batch in which a stale pointer could wait.  When nothing
 * is ready after an event or an alarm, `idle` is called before the loop sleeps;
 * as long as it says that there is more to do, the loop only peeks.  One thread;
 * no ring here.
 */
#ifndef JAIL_POLLER_H
#define JAIL_POLLER_H

#include "base/err.h"
#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

struct watch;
typedef void watch_fn(struct watch *w, uint32_t events);

/* Embedded in its owner; container_of finds it. */
struct watch {
	int fd;          /* borrowed: the owner removes the watch before it closes the fd */
	watch_fn *ready; /* called with EPOLL* bits */
	bool added;
};

struct alarm;
typedef void alarm_fn(struct alarm *a);

struct alarm {
	struct list link; /* in poller.alarms */
	int64_t at_ms;    /* CLOCK_MONOTONIC */
	alarm_fn *fire;   /* called once; may set the alarm again */
};

struct poller {
	int epfd;
	bool stop;
	struct list alarms;
	bool (*idle)(void *ctx); /* true: there is more to do */
	void *ctx;
};

/* ---- life ---- */
MUST_USE int poller_init(struct poller *p, struct err *e);
void poller_done(struct poller *p); /* closes the epoll; watches and alarms are their owners' */

/* ---- use ---- */
MUST_USE int poller_add(
        struct poller *p, struct watch *w, int fd, uint32_t events, watch_fn *ready, struct err *e);
void poller_change(struct poller *p, struct watch *w, uint32_t events);
void poller_remove(struct poller *p, struct watch *w); /* not added: nothing happens */

void alarm_init(struct alarm *a, alarm_fn *fire);
void alarm_set(struct poller *p, struct alarm *a, int64_t in_ms); /* again: moves it */
void alarm_clear(struct alarm *a);

/* Until poller.stop is set by a callback. */
MUST_USE int poller_run(struct poller *p, struct err *e);

#endif
