#include "jail/later.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"

#include <stdlib.h>
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
	struct watch ended;
	struct alarm look;
	int64_t until_ms; /* waiting for an unmounting */
	/* Of the work: */
	bool ready;
	struct disks_opened opened; /* owned: ready */
	struct err failed;          /* not ready */
};

static void free_later(struct later *l)
{
	poller_remove(l->all->poller, &l->ended);
	alarm_clear(&l->look);
	list_remove(&l->link);
	l->all->count--;
	disks_job_abort(&l->job, l->all->reaper);
	disk_done(&l->opened.disk, l->all->closer);
	fd_close(l->exec_fd);
	free(l);
}

static void ask_again(struct later *l)
{
	struct laters *all = l->all;
	poller_remove(all->poller, &l->ended);
	alarm_clear(&l->look);
	list_remove(&l->link); /* it waits no more */
	all->asking = l;
	all->again(all->ctx, &l->msg, take_fd(l->exec_fd));
	all->asking = NULL;
	free_later(l);
}

static void on_ended(struct watch *w, uint32_t events);

/* Until its job's next child has ended, or a while. */
static int wait_for(struct later *l, struct err *e)
{
	struct poller *p = l->all->poller;
	if (l->job.step == DISKS_WAIT) {
		if (!l->until_ms)
			l->until_ms = clock_mono_ms() + UNMOUNT_PATIENCE_MS;
		if (clock_mono_ms() >= l->until_ms)
			return err_set(e, -EBUSY,
			        "layer limit.disk: the image of %s is in use still",
			        l->job.ask.session);
		alarm_set(p, &l->look, UNMOUNT_LOOK_MS);
		return 0;
	}
	int r = poller_add(p, &l->ended, l->job.job.child.pidfd, EPOLLIN, on_ended, e);
	if (r == 0 && l->job.step == DISKS_FILL)
		alarm_set(p, &l->look, ROOM_LOOK_MS);
	return r;
}

static void next_step(struct later *l, int status)
{
	struct laters *all = l->all;
	poller_remove(all->poller, &l->ended);
	alarm_clear(&l->look);
	l->job.ask.promised = all->promised(all->ctx);
	int r = -EINPROGRESS; /* what was killed and still works on the files is waited for */
	if (l->job.step != DISKS_WAIT || !(reaper_holds(all->reaper, l->job.ask.session) ||
	                                         all->used(all->ctx, l->job.ask.session)))
		r = disks_job_next(all->disks, &l->job, status, &l->opened, &l->failed);
	if (r == -EINPROGRESS)
		r = wait_for(l, &l->failed);
	else
		l->ready = r == 0;
	if (r == 0 && !l->ready)
		return;
	if (l->no_room)
		(void)err_set(&l->failed, -ENOSPC,
		        "layer limit.disk: no room on the host to copy the files of %s into an "
		        "image (remedy: room on the state's disk)",
		        l->job.ask.session);
	ask_again(l);
}

static void on_ended(struct watch *w, uint32_t events)
{
	(void)events;
	struct later *l = container_of(w, struct later, ended);
	struct child *c = &l->job.job.child;
	int status = child_reap_watched(c, l->all->poller, w);
	if (status != -ETIME)
		next_step(l, status);
}

static void on_look(struct alarm *a)
{
	struct later *l = container_of(a, struct later, look);
	struct laters *all = l->all;
	if (l->job.step == DISKS_WAIT) {
		next_step(l, 0);
		return;
	}
	l->no_room = !disks_room(all->disks, all->promised(all->ctx));
	if (l->no_room)
		child_kill(&l->job.job.child);
	else
		alarm_set(all->poller, a, ROOM_LOOK_MS);
}

void laters_init(struct laters *l, struct poller *p, const struct disks *d, struct reaper *r)
{
	*l = (struct laters){.poller = p, .disks = d, .reaper = r};
	list_init(&l->waiting);
}

void laters_drop(struct laters *l)
{
	list_for_each (at, &l->waiting, struct later, link)
		free_later(at);
}

int laters_add(struct laters *l, const struct jail_make *m, int exec_fd, struct disks_job *job,
        struct err *e)
{
	struct later *w = xnew(struct later);
	*w = (struct later){.all = l, .msg = *m, .exec_fd = exec_fd};
	w->job = *job;
	w->opened.disk = (struct disk)DISK_NONE;
	*job = (struct disks_job)DISKS_JOB_NONE;
	alarm_init(&w->look, on_look);
	list_append(&l->waiting, &w->link);
	l->count++;
	int r = wait_for(w, e);
	if (r < 0)
		free_later(w);
	return r;
}

bool laters_full(const struct laters *l)
{
	return l->count >= LIMIT_JAILS;
}

bool laters_has(const struct laters *l, const char *session)
{
	list_for_each (at, &l->waiting, struct later, link)
		if (strcmp(at->job.ask.session, session) == 0)
			return true;
	return false;
}

unsigned laters_working(const struct laters *l)
{
	unsigned n = 0;
	list_for_each (at, &l->waiting, struct later, link)
		n += at->job.worked;
	return n;
}

/* Policies come zeroed from policyc; were padding to differ, a request would be refused for it. */
static bool same_bytes(const void *a, const void *b, size_t n)
{
	return memcmp(a, b, n) == 0;
}

void laters_follow(struct laters *l, const struct policy_set *old, const struct policy_set *now)
{
	list_for_each (at, &l->waiting, struct later, link) {
		struct jail_make *m = &at->msg;
		if (m->policy_generation != old->generation || m->policy >= old->count)
			continue;
		const struct policy *was = &old->policies[m->policy];
		int i = policy_find(now, was->name);
		if (i < 0 || !same_bytes(was, &now->policies[i], sizeof(*was)))
			continue;
		m->policy = (uint32_t)i;
		m->policy_generation = now->generation;
	}
}

int laters_outcome(struct laters *l, struct disks_opened *ret, struct err *e)
{
	struct later *at = l->asking;
	if (!at)
		return 0;
	if (!at->ready)
		return err_set(e, at->failed.code, "%s", at->failed.text);
	*ret = at->opened;
	at->opened.disk = (struct disk)DISK_NONE;
	return 1;
}
