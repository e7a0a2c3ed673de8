/*
 * Sessions that are being deleted: a rename into the trash, which may wait for the disk.
 */
#include "base/log.h"
#include "base/mem.h"
#include "jail/daemon.h"
#include "jail/sessions.h"
#include "jail/snapshots.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

/* At a time: each is a process. */
enum { DELETES_MAX = 64 };

struct deletion {
	struct list link; /* in daemon.deletes */
	struct daemon *d;
	struct job job;
	struct watch ended;
	uint64_t req; /* 0: who asked is gone */
	char session[ID_MAX];
};

static int work_delete(const void *arg, struct job_out *out, struct err *e)
{
	const struct deletion *x = arg;
	(void)out;
	disks_forget(&x->d->disks, x->session);
	return session_trash(&x->d->state, x->session, e);
}

static void free_deletion(struct deletion *x)
{
	poller_remove(&x->d->poller, &x->ended);
	reaper_give(&x->d->reaper, &x->job.child, x->session);
	job_forget(&x->job);
	list_remove(&x->link);
	free(x);
}

static void on_ended(struct watch *w, uint32_t events)
{
	(void)events;
	struct deletion *x = container_of(w, struct deletion, ended);
	struct daemon *d = x->d;
	int status = child_reap_watched(&x->job.child, &d->poller, w);
	if (status == -ETIME)
		return;
	struct job_out out;
	struct err e = {0};
	if (job_end(&x->job, status, &out, &e) < 0)
		log_warn("deleting %s: %s", x->session, e.text);
	if (x->req)
		peers_reply(d, x->req, &e);
	free_deletion(x);
	/* Also after one that could not say how it went: it may have put something there. */
	if (d->stopping)
		return;
	daemon_empty_trash(d);
	snapshots_session_gone(d);
}

int deletes_begin(struct daemon *d, const char *session, uint64_t req, struct err *e)
{
	unsigned n = 0;
	list_for_each (at, &d->deletes, struct deletion, link)
		n++;
	if (n >= DELETES_MAX)
		return err_set(e, -EAGAIN, "%u sessions are being deleted already", n);
	struct deletion *x = xnew(struct deletion);
	*x = (struct deletion){.d = d, .job = JOB_NONE, .req = req};
	(void)str_copy(x->session, sizeof(x->session), session);
	list_append(&d->deletes, &x->link);
	const int keep[] = {d->state.sessions, d->state.trash};
	const struct job_spec spec = {work_delete, x, keep, ARRAY_LEN(keep)};
	int r = job_start(&spec, &x->job, e);
	if (r == 0)
		r = poller_add(&d->poller, &x->ended, x->job.child.pidfd, EPOLLIN, on_ended, e);
	if (r == 0)
		return -EINPROGRESS;
	free_deletion(x);
	daemon_empty_trash_later(d); /* it may have done its work before it was killed */
	return r;
}

bool deletes_has(const struct daemon *d, const char *session)
{
	list_for_each (at, &d->deletes, struct deletion, link)
		if (strcmp(at->session, session) == 0)
			return true;
	return false;
}

void deletes_forget(struct daemon *d)
{
	list_for_each (at, &d->deletes, struct deletion, link)
		at->req = 0;
}

void deletes_done(struct daemon *d)
{
	list_for_each (at, &d->deletes, struct deletion, link)
		free_deletion(at);
}
