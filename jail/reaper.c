#include "jail/reaper.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

/* Where the loop cannot watch it, or it has ended and a tracer holds it. */
enum { LOOK_MS = 100 };

struct dying {
	struct list link; /* in reaper.dying */
	struct reaper *all;
	struct child child; /* owned */
	char session[ID_MAX];
	struct watch ended;
	struct alarm look;
};

static void free_dying(struct dying *d)
{
	poller_remove(d->all->poller, &d->ended);
	alarm_clear(&d->look);
	list_remove(&d->link);
	d->all->count--;
	free(d);
}

static void collect(struct dying *d)
{
	poller_remove(d->all->poller, &d->ended); /* while the descriptor is its own */
	if (child_reap(&d->child, 0) >= 0)
		free_dying(d);
	else
		alarm_set(d->all->poller, &d->look, LOOK_MS);
}

static void on_ended(struct watch *w, uint32_t events)
{
	(void)events;
	collect(container_of(w, struct dying, ended));
}

static void on_look(struct alarm *a)
{
	collect(container_of(a, struct dying, look));
}

void reaper_init(struct reaper *r, struct poller *p)
{
	*r = (struct reaper){.poller = p};
	list_init(&r->dying);
}

void reaper_give(struct reaper *r, struct child *c, const char *session)
{
	if (c->pidfd < 0)
		return;
	child_kill(c);
	if (child_reap(c, 0) >= 0)
		return;
	struct dying *d = xnew(struct dying);
	*d = (struct dying){.all = r, .child = *c};
	*c = (struct child)CHILD_NONE;
	(void)str_copy(d->session, sizeof(d->session), session);
	alarm_init(&d->look, on_look);
	list_append(&r->dying, &d->link);
	r->count++;
	struct err e;
	if (poller_add(r->poller, &d->ended, d->child.pidfd, EPOLLIN, on_ended, &e) < 0)
		alarm_set(r->poller, &d->look, LOOK_MS);
}

bool reaper_holds(const struct reaper *r, const char *session)
{
	list_for_each (d, &r->dying, struct dying, link)
		if (strcmp(d->session, session) == 0)
			return true;
	return false;
}

void reaper_drop(struct reaper *r, int ms)
{
	int64_t until = clock_mono_ms() + ms;
	list_for_each (d, &r->dying, struct dying, link) {
		int64_t left = until - clock_mono_ms();
		poller_remove(r->poller, &d->ended);
		if (child_reap(&d->child, left > 0 ? (int)left : 0) < 0)
			fd_close(d->child.pidfd);
		free_dying(d);
	}
}
