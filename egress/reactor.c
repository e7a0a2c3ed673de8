#include "egress/reactor.h"

#include "base/clock.h"
#include "base/fd.h"

/* Events fetched in one turn: enough to spread the cost of the call, small enough that timers and
 * burials are not held up by a burst of connections. */
enum { REACTOR_BATCH = 128 };

struct reactor {
	int epoll; /* owned */
	bool stop;
	struct list timers;  /* of struct timer.link */
	struct list corpses; /* of struct corpse.link */
};

struct reactor *reactor_new(struct err *e)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);
	if (fd < 0) {
		err_errno(e, "epoll_create1");
		return NULL;
	}
	struct reactor *r = xnew(struct reactor);
	r->epoll = fd;
	list_init(&r->timers);
	list_init(&r->corpses);
	return r;
}

void reactor_bury_all(struct reactor *r)
{
	struct corpse *c;
	while ((c = list_first(&r->corpses, struct corpse, link))) {
		list_remove(&c->link);
		c->bury(c);
	}
}

void reactor_free(struct reactor *r)
{
	if (!r)
		return;
	reactor_bury_all(r);
	fd_close(r->epoll);
	free(r);
}

int reactor_watch(struct reactor *r, struct watch *w, int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = w};
	if (epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	w->fd = fd;
	w->events = events;
	return 0;
}

void reactor_set(struct reactor *r, struct watch *w, uint32_t events)
{
	if (w->fd < 0 || w->events == events)
		return;
	struct epoll_event ev = {.events = events, .data.ptr = w};
	/* Fails only for a descriptor that was never added: a broken promise of ours. */
	if (epoll_ctl(r->epoll, EPOLL_CTL_MOD, w->fd, &ev) < 0)
		abort();
	w->events = events;
}

void reactor_unwatch(struct reactor *r, struct watch *w)
{
	if (w->fd < 0)
		return;
	/* The descriptor may be closed already (libcurl says so late): then it is off anyway. */
	(void)epoll_ctl(r->epoll, EPOLL_CTL_DEL, w->fd, NULL);
	w->fd = -1;
	w->events = 0;
}

void reactor_arm(struct reactor *r, struct timer *t, int64_t in_ms)
{
	reactor_disarm(t);
	t->due_ms = clock_mono_ms() + (in_ms < 0 ? 0 : in_ms);
	list_append(&r->timers, &t->link);
}

void reactor_disarm(struct timer *t)
{
	if (t->link.next)
		list_remove(&t->link);
}

void reactor_bury(struct reactor *r, struct corpse *c)
{
	list_append(&r->corpses, &c->link);
}

void reactor_stop(struct reactor *r)
{
	r->stop = true;
}

static int wait_ms(struct reactor *r)
{
	int64_t first = -1;
	list_for_each (t, &r->timers, struct timer, link) {
		if (first < 0 || t->due_ms < first)
			first = t->due_ms;
	}
	if (first < 0)
		return -1;
	int64_t in = first - clock_mono_ms();
	return in <= 0 ? 0 : in > 60000 ? 60000 : (int)in;
}

static void fire_due(struct reactor *r)
{
	int64_t now = clock_mono_ms();
	struct list due = LIST_INIT(due);
	list_for_each (t, &r->timers, struct timer, link) {
		if (t->due_ms > now)
			continue;
		list_remove(&t->link);
		list_append(&due, &t->link);
	}
	struct timer *t;
	while ((t = list_first(&due, struct timer, link))) {
		list_remove(&t->link);
		t->fire(t);
	}
}

int reactor_run(struct reactor *r, struct err *e)
{
	struct epoll_event evs[REACTOR_BATCH];
	while (!r->stop) {
		int n = epoll_wait(r->epoll, evs, REACTOR_BATCH, wait_ms(r));
		if (n < 0 && errno != EINTR)
			return err_errno(e, "epoll_wait");
		for (int i = 0; i < n; i++) {
			struct watch *w = evs[i].data.ptr;
			if (w->fd >= 0)
				w->ready(w, evs[i].events);
		}
		fire_due(r);
		reactor_bury_all(r);
	}
	return 0;
}
