#include "jail/later.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"

#include <string.h>
#include <sys/epoll.h>

enum {
	UNMOUNT_LOOK_MS = 10, /* unmounting takes some 20 ms */
	UNMOUNT_PATIENCE_MS = 30000,
	ROOM_LOOK_MS = 100, /* how much a copy can write beyond what is allowed: some 100 MB */
};

struct later {
	struct list link; /* in laters.waiting */
	struct laters *all;
	struct jail_make msg;
	int exec_fd; /* owned */
	struct disks_job job;
	bool no_room; /* the child was killed for that */
	bool worked;  /* some work was done for it before */
	struct watch ended;
	struct alarm look;
	int64_t until_ms;
	struct err failed; /* code 0: not */
};

static void free_later(struct later *l)
{
	poller_remove(l->all->poller, &l->ended);
	alarm_clear(&l->look);
	list_remove(&l->link);
	l->all->count--;
	disks_job_abort(&l->job);
	fd_close(l->exec_fd);
	free(l);
}

static void ask_again(struct later *l)
{
	struct laters *all = l->all;
	poller_remove(all->poller, &l->ended);
	alarm_clear(&l->look);
	all->asking = l;
	all->again(all->ctx, &l->msg, take_fd(l->exec_fd));
	all->asking = NULL;
	free_later(l);
}

static void on_ended(struct watch *w, uint32_t events)
{
	(void)events;
	struct later *l = container_of(w, struct later, ended);
	int status = child_reap(&l->job.child, 0);
	if (status == -ETIME)
		return;
	if (disks_job_end(&l->job, status, &l->failed) == 0)
		l->failed.code = 0;
	else if (l->no_room)
		(void)err_set(&l->failed, -ENOSPC,
		        "layer limit.disk: no room on the host to copy the files of %s into an "
		        "image (remedy: room on the state's disk)",
		        l->job.session);
	ask_again(l);
}

static void on_look(struct alarm *a)
{
	struct later *l = container_of(a, struct later, look);
	if (l->job.work != DISKS_WAIT) {
		l->no_room = !disks_room(l->all->disks, l->all->promised(l->all->ctx));
		if (l->no_room)
			child_kill(&l->job.child);
		else
			alarm_set(l->all->poller, a, ROOM_LOOK_MS);
		return;
	}
	ask_again(l);
}

void laters_init(struct laters *l, struct poller *p, const struct disks *d)
{
	*l = (struct laters){.poller = p, .disks = d};
	list_init(&l->waiting);
}

void laters_drop(struct laters *l)
{
	list_for_each (at, &l->waiting, struct later, link)
		free_later(at);
}

/* One that waits for an unmounting asks again and again: its patience goes on. */
static int64_t patience(const struct laters *l, int64_t now)
{
	const struct later *before = l->asking;
	return before && before->job.work == DISKS_WAIT ? before->until_ms
	                                                : now + UNMOUNT_PATIENCE_MS;
}

int laters_add(struct laters *l, const struct jail_make *m, int exec_fd, struct disks_job *job,
        struct err *e)
{
	int64_t now = clock_mono_ms();
	bool worked = l->asking && (l->asking->worked || l->asking->job.work != DISKS_WAIT);
	if (worked && job->work != DISKS_WAIT) { /* nor would it be done the next time */
		int r = err_set(e, -EIO,
		        "layer limit.disk: what was made for the files of %s does not fit "
		        "(remedy: another limits.inodes)",
		        job->session);
		fd_close(exec_fd);
		disks_job_abort(job);
		return r;
	}
	struct later *w = xnew(struct later);
	*w = (struct later){.all = l,
	        .msg = *m,
	        .exec_fd = exec_fd,
	        .worked = worked,
	        .until_ms = patience(l, now)};
	w->job = *job;
	*job = (struct disks_job)DISKS_JOB_NONE;
	if (l->asking) /* as it is, once it is unmounted: the work is not begun again */
		w->failed = l->asking->failed;
	alarm_init(&w->look, on_look);
	list_append(&l->waiting, &w->link);
	l->count++;
	int r = 0;
	if (w->job.work != DISKS_WAIT)
		r = poller_add(l->poller, &w->ended, w->job.child.pidfd, EPOLLIN, on_ended, e);
	else if (now >= w->until_ms)
		r = err_set(e, -EBUSY, "layer limit.disk: the image of %s is in use still",
		        w->job.session);
	if (r < 0) {
		free_later(w);
		return r;
	}
	alarm_set(l->poller, &w->look, w->job.work == DISKS_WAIT ? UNMOUNT_LOOK_MS : ROOM_LOOK_MS);
	return 0;
}

bool laters_full(const struct laters *l)
{
	return l->count - (l->asking ? 1 : 0) >= LIMIT_JAILS;
}

bool laters_has(const struct laters *l, const char *session)
{
	list_for_each (at, &l->waiting, struct later, link)
		if (at != l->asking && strcmp(at->job.session, session) == 0)
			return true;
	return false;
}

const struct err *laters_failed(const struct laters *l)
{
	return l->asking && l->asking->failed.code ? &l->asking->failed : NULL;
}
