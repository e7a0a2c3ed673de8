#include "jail/poller.h"
#include "base/clock.h"
#include "base/fd.h"

#include <stddef.h>
#include <sys/epoll.h>

int poller_init(struct poller *p, struct err *e)
{
	*p = (struct poller){.epfd = epoll_create1(EPOLL_CLOEXEC)};
	list_init(&p->alarms);
	return p->epfd < 0 ? err_errno(e, "epoll_create1") : 0;
}

void poller_done(struct poller *p)
{
	fd_close(p->epfd);
	p->epfd = -1;
}

int poller_add(
        struct poller *p, struct watch *w, int fd, uint32_t events, watch_fn *ready, struct err *e)
{
	struct epoll_event ev = {.events = events, .data.ptr = w};
	if (epoll_ctl(p->epfd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return err_errno(e, "epoll_ctl");
	*w = (struct watch){.fd = fd, .ready = ready, .added = true};
	return 0;
}

void poller_change(struct poller *p, struct watch *w, uint32_t events)
{
	if (!w->added)
		return;
	struct epoll_event ev = {.events = events, .data.ptr = w};
	(void)epoll_ctl(p->epfd, EPOLL_CTL_MOD, w->fd, &ev); /* cannot fail for an fd added here */
}

void poller_remove(struct poller *p, struct watch *w)
{
	if (!w->added)
		return;
	/* Explicitly: a dup of the file in a child would keep a closed fd in the set. */
	(void)epoll_ctl(p->epfd, EPOLL_CTL_DEL, w->fd, NULL);
	w->added = false;
}

void alarm_init(struct alarm *a, alarm_fn *fire)
{
	list_init(&a->link);
	a->fire = fire;
}

void alarm_set(struct poller *p, struct alarm *a, int64_t in_ms)
{
	list_remove(&a->link);
	a->at_ms = clock_mono_ms() + in_ms;
	list_append(&p->alarms, &a->link);
}

void alarm_clear(struct alarm *a)
{
	list_remove(&a->link);
}

/* The alarm that is due first, or NULL.  There are a handful, so a list will do. */
static struct alarm *next_alarm(struct poller *p)
{
	struct alarm *first = NULL;
	list_for_each (a, &p->alarms, struct alarm, link)
		if (!first || a->at_ms < first->at_ms)
			first = a;
	return first;
}

/* True when one was due. */
static bool fire_alarms(struct poller *p)
{
	int64_t now = clock_mono_ms();
	bool fired = false;
	for (struct alarm *a = next_alarm(p); a && a->at_ms <= now; a = next_alarm(p)) {
		list_remove(&a->link);
		a->fire(a);
		fired = true;
	}
	return fired;
}

static int wait_ms(struct poller *p)
{
	struct alarm *a = next_alarm(p);
	if (!a)
		return -1;
	int64_t ms = a->at_ms - clock_mono_ms();
	return ms < 0 ? 0 : ms > 60000 ? 60000 : (int)ms;
}

int poller_run(struct poller *p, struct err *e)
{
	bool busy = true;
	while (!p->stop) {
		busy = fire_alarms(p) || busy;
		if (p->stop)
			break;
		struct epoll_event ev;
		int n = epoll_wait(p->epfd, &ev, 1, busy ? 0 : wait_ms(p));
		if (n < 0 && errno != EINTR)
			return err_errno(e, "epoll_wait");
		if (n > 0) {
			struct watch *w = ev.data.ptr;
			if (w->added)
				w->ready(w, ev.events);
			else /* it could not be taken out then */
				(void)epoll_ctl(p->epfd, EPOLL_CTL_DEL, w->fd, NULL);
			busy = true;
		} else if (busy) {
			busy = p->idle && p->idle(p->ctx);
		}
	}
	return 0;
}
