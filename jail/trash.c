/*
 * Emptying the trash: one child at a time, again after it failed.
 */
#include "base/log.h"
#include "base/mem.h"
#include "jail/daemon.h"
#include "jail/sessions.h"

#include <sys/epoll.h>

/* Between two tries, doubled each time. */
enum { TRASH_FIRST_MS = 500, TRASH_MAX_MS = 600000 };

static void on_trash_alarm(struct alarm *a)
{
	daemon_empty_trash(container_of(a, struct daemon, trash_alarm));
}

/* Neither a moment without memory nor a disk that errs now may keep what was deleted. */
void daemon_empty_trash_later(struct daemon *d)
{
	if (d->stopping)
		return; /* the next start's */
	d->trash_wait_ms = d->trash_wait_ms ? d->trash_wait_ms * 2 : TRASH_FIRST_MS;
	if (d->trash_wait_ms > TRASH_MAX_MS)
		d->trash_wait_ms = TRASH_MAX_MS;
	alarm_set(&d->poller, &d->trash_alarm, d->trash_wait_ms);
}

static void on_trash_ended(struct watch *w, uint32_t events)
{
	(void)events;
	struct daemon *d = container_of(w, struct daemon, trash_watch);
	int pidfd = d->trash.child.pidfd;
	poller_remove(&d->poller, w);
	int status = child_reap(&d->trash.child, 0);
	struct err e;
	if (status < 0 && poller_add(&d->poller, w, pidfd, EPOLLIN, on_trash_ended, &e) == 0)
		return; /* held by a tracer: look again when it lets go */
	bool again = d->trash_again;
	d->trash_again = false;
	struct job_out out;
	if (job_end(&d->trash, status, &out, &e) < 0) {
		log_err("emptying the trash of %s: %s", d->state.path, e.text);
		daemon_empty_trash_later(d);
		return;
	}
	d->trash_wait_ms = 0;
	if (again && !d->stopping)
		daemon_empty_trash(d);
}

void daemon_empty_trash(struct daemon *d)
{
	if (d->trash.child.pidfd >= 0) {
		d->trash_again = true;
		return;
	}
	struct err e;
	int r = trash_empty(&d->state, &d->trash, &e);
	if (r == 0) {
		r = poller_add(&d->poller, &d->trash_watch, d->trash.child.pidfd, EPOLLIN,
		        on_trash_ended, &e);
		if (r < 0)
			daemon_leave_trash(d);
	}
	if (r < 0) {
		log_err("emptying the trash: %s", e.text);
		daemon_empty_trash_later(d);
	}
}

void daemon_init_trash(struct daemon *d)
{
	d->trash = (struct job)JOB_NONE;
	alarm_init(&d->trash_alarm, on_trash_alarm);
}

void daemon_leave_trash(struct daemon *d)
{
	poller_remove(&d->poller, &d->trash_watch);
	reaper_give(&d->reaper, &d->trash.child, "");
	job_forget(&d->trash);
}
