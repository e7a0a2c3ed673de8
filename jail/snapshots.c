/*
 * Theory of operation: a request is one job.  One that makes a snapshot waits first until nothing
 * has the session's files (an agent that only waits for another run is ended for it, an image is
 * still being unmounted), and is killed where the state's disk gets too full.  Whatever ends badly
 * leaves a layer without a name, which the sweep after it takes away.
 */
#include "jail/snapshots.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "jail/daemon.h"
#include "jail/layers.h"
#include "jail/snapshot_copy.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

enum {
	ASKED_MAX = 16, /* at a time: each is a process */
	IDLE_LOOK_MS = 20,
	IDLE_PATIENCE_MS = 30000,
	ROOM_LOOK_MS = 100,
	SWEEP_AGAIN_MS = 200, /* what was killed and holds its layer has gone by then */
};

struct snapshot_work {
	struct list link; /* in daemon.snapshots.works */
	struct daemon *d;
	struct jail_snapshot_ask ask;
	bool sweep; /* asked by nobody */
	struct job job;
	struct watch ended;
	struct alarm look;
	int64_t until_ms; /* waiting for the session's files */
	uint64_t req;     /* 0: who asked is gone */
	bool no_room;
};

static bool creates(const struct snapshot_work *w)
{
	return !w->sweep && w->ask.op == JAIL_SNAPSHOT_CREATE;
}

/* ---- in the job ---- */

static int work_main(const void *arg, struct job_out *out, struct err *e)
{
	const struct snapshot_work *w = arg;
	const struct state *s = &w->d->state;
	if (w->sweep) {
		out->size = sizeof(struct layers_left);
		return layers_sweep(s, (struct layers_left *)(void *)out->bytes, e);
	}
	switch ((enum jail_snapshot_op)w->ask.op) {
	case JAIL_SNAPSHOT_CREATE:
		return snapshot_copy(s, &w->ask, e);
	case JAIL_SNAPSHOT_REMOVE:
		return layers_remove(s, w->ask.name, e);
	case JAIL_SNAPSHOT_LIST:
		out->fds[0] = layers_list(s, w->ask.name, e);
		return out->fds[0] < 0 ? out->fds[0] : 0;
	case JAIL_SNAPSHOT_OPS:
		break;
	}
	return err_set(e, -EINVAL, "operation %u", w->ask.op);
}

/* ---- in agentboxd ---- */

static void free_work(struct snapshot_work *w)
{
	poller_remove(&w->d->poller, &w->ended);
	alarm_clear(&w->look);
	reaper_give(&w->d->reaper, &w->job.child, creates(w) ? w->ask.session : "");
	job_forget(&w->job);
	list_remove(&w->link);
	free(w);
}

static void swept(struct daemon *d, int result, const struct job_out *out, const struct err *e)
{
	struct layers_left left = {.locked = 1};
	if (result < 0)
		log_warn("snapshots that are not used: %s", e->text);
	else if (out->size == sizeof(left))
		memcpy(&left, out->bytes, sizeof(left));
	d->snapshots.nameless = left.used;
	/* One that is being made is followed by a sweep. */
	if (left.locked && !snapshots_working(d))
		alarm_set(&d->poller, &d->snapshots.again, SWEEP_AGAIN_MS);
}

/* What it has made or left shows on the disk. */
static void finish(struct snapshot_work *w, int result, struct err *e, const struct job_out *out)
{
	struct daemon *d = w->d;
	bool list = !w->sweep && w->ask.op == JAIL_SNAPSHOT_LIST, sweep = w->sweep;
	if (w->no_room)
		(void)err_set(e, -ENOSPC,
		        "snapshot '%s': no room on the state's disk (remedy: room on it, or a "
		        "smaller workspace)",
		        w->ask.name);
	if (sweep && !d->stopping)
		swept(d, result, out, e);
	if (w->req)
		peers_reply_with(d, w->req, e, out->fds[0]);
	free_work(w);
	if (d->stopping || list)
		return;
	if (!sweep)
		snapshots_sweep(d);
	if (trash_waits(&d->state))
		daemon_empty_trash(d);
}

static void on_ended(struct watch *watch, uint32_t events)
{
	(void)events;
	struct snapshot_work *w = container_of(watch, struct snapshot_work, ended);
	int status = child_reap_watched(&w->job.child, &w->d->poller, watch);
	if (status == -ETIME)
		return;
	auto_job_out struct job_out out = JOB_OUT_NONE;
	struct err e = {0};
	int r = job_end(&w->job, status, &out, &e);
	if (r == -EAGAIN && creates(w) && clock_mono_ms() < w->until_ms) {
		alarm_set(&w->d->poller, &w->look, IDLE_LOOK_MS); /* unmounted in a moment */
		return;
	}
	finish(w, r, &e, &out);
}

static int start(struct snapshot_work *w, struct err *e)
{
	struct daemon *d = w->d;
	const int keep[] = {d->state.sessions, d->state.trash, d->state.snapshots};
	const struct job_spec spec = {work_main, w, keep, ARRAY_LEN(keep)};
	int r = job_start(&spec, &w->job, e);
	if (r == 0)
		r = poller_add(&d->poller, &w->ended, w->job.child.pidfd, EPOLLIN, on_ended, e);
	if (r == 0 && creates(w))
		alarm_set(&d->poller, &w->look, ROOM_LOOK_MS);
	return r;
}

/* A jail that rests is ended for it.  False: something has the session's files. */
static bool is_idle(struct daemon *d, const char *session)
{
	struct jail *j = jails_with_session(&d->jails, session);
	if (j && j->state == JAILS_LIVE && j->resting)
		jails_kill(j);
	return !j && !laters_has(&d->laters, session) && !deletes_has(d, session) &&
	       !reaper_holds(&d->reaper, session);
}

static void on_look(struct alarm *a)
{
	struct snapshot_work *w = container_of(a, struct snapshot_work, look);
	const struct job_out none = JOB_OUT_NONE;
	struct daemon *d = w->d;
	struct err e = {0};
	if (w->job.child.pidfd >= 0) { /* it copies */
		w->no_room =
		        disks_check_room(&d->disks, jails_promised(&d->jails), 1, &e) == -ENOSPC;
		if (w->no_room)
			child_kill(&w->job.child);
		else
			alarm_set(&d->poller, a, ROOM_LOOK_MS);
		return;
	}
	if (is_idle(d, w->ask.session)) {
		int r = start(w, &e);
		if (r < 0)
			finish(w, r, &e, &none);
	} else if (clock_mono_ms() < w->until_ms) {
		alarm_set(&d->poller, a, IDLE_LOOK_MS);
	} else {
		int r = err_set(&e, -EBUSY, "session %s is in use", w->ask.session);
		finish(w, r, &e, &none);
	}
}

static struct snapshot_work *new_work(struct daemon *d)
{
	struct snapshot_work *w = xnew(struct snapshot_work);
	*w = (struct snapshot_work){.d = d, .job = JOB_NONE};
	alarm_init(&w->look, on_look);
	list_append(&d->snapshots.works, &w->link);
	return w;
}

static void on_again(struct alarm *a)
{
	snapshots_sweep(container_of(a, struct daemon, snapshots.again));
}

void snapshots_init(struct daemon *d)
{
	alarm_init(&d->snapshots.again, on_again);
	list_init(&d->snapshots.works);
}

int snapshots_begin(
        struct daemon *d, const struct jail_snapshot_ask *m, uint64_t req, struct err *e)
{
	unsigned n = 0;
	bool create = m->op == JAIL_SNAPSHOT_CREATE;
	list_for_each (at, &d->snapshots.works, struct snapshot_work, link)
		n++;
	if (n >= ASKED_MAX)
		return err_set(e, -EAGAIN, "%u requests for snapshots are under way already", n);
	const struct jail *j = create ? jails_with_session(&d->jails, m->session) : NULL;
	if (create && ((j && j->state == JAILS_LIVE && !j->resting) ||
	                      laters_has(&d->laters, m->session) || snapshots_has(d, m->session)))
		return err_set(e, -EBUSY, "session %s is in use", m->session);
	int room = create ? disks_check_room(&d->disks, jails_promised(&d->jails), 1, e) : 0;
	if (room < 0)
		return room;
	struct snapshot_work *w = new_work(d);
	w->ask = *m;
	w->req = req;
	w->until_ms = clock_mono_ms() + IDLE_PATIENCE_MS;
	int r = 0;
	if (!create || is_idle(d, m->session))
		r = start(w, e);
	else
		alarm_set(&d->poller, &w->look, IDLE_LOOK_MS);
	if (r == 0)
		return -EINPROGRESS;
	free_work(w);
	return r;
}

bool snapshots_has(const struct daemon *d, const char *session)
{
	list_for_each (at, &d->snapshots.works, struct snapshot_work, link)
		if (creates(at) && strcmp(at->ask.session, session) == 0)
			return true;
	return false;
}

unsigned snapshots_working(const struct daemon *d)
{
	unsigned n = 0;
	list_for_each (at, &d->snapshots.works, struct snapshot_work, link)
		n += creates(at);
	return n;
}

/* Nobody would hear of it, and the session's next run waits for it. */
void snapshots_forget(struct daemon *d)
{
	list_for_each (at, &d->snapshots.works, struct snapshot_work, link) {
		at->req = 0;
		if (creates(at))
			free_work(at);
	}
	if (!d->stopping && !upgrade_waits(d))
		snapshots_sweep(d);
}

void snapshots_sweep(struct daemon *d)
{
	struct err e;
	struct snapshot_work *w = new_work(d);
	w->sweep = true;
	if (start(w, &e) == 0)
		return;
	free_work(w);
	const struct job_out none = JOB_OUT_NONE;
	swept(d, -EIO, &none, &e);
}

void snapshots_session_gone(struct daemon *d)
{
	if (d->snapshots.nameless)
		snapshots_sweep(d);
}

void snapshots_done(struct daemon *d)
{
	alarm_clear(&d->snapshots.again);
	list_for_each (at, &d->snapshots.works, struct snapshot_work, link)
		free_work(at);
}
