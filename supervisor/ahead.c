/*
 * Theory of operation.  Once a second, while some harness wants agents ahead, one is begun for each
 * that has too few, as long as there is room for them beside what runs.  What fails on the way is
 * ended by the keeper like any other, and its harness rests for a while.
 */
#include "supervisor/ahead.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/early.h"
#include "supervisor/harnesses.h"
#include "supervisor/jails.h"
#include "supervisor/keeper.h"
#include "supervisor/loop.h"
#include "supervisor/plan.h"
#include "supervisor/policies.h"
#include "supervisor/runs.h"
#include "supervisor/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { TICK_MS = 1000, FAILED_MS = 30000 };

struct ahead {
	struct daemon *d; /* borrowed */
	int dirfd;
	struct op clock;
	struct list makings;    /* of struct making */
	struct list left;       /* of struct left: sessions to be removed */
	int64_t rests_until_ms; /* after a failure */
	bool stopped;
};

struct making {
	struct list link; /* in ahead.makings */
	struct ahead *all;
	char session[ID_MAX], harness[NAME_MAX_LEN];
};

struct left {
	struct list link; /* in ahead.left */
	struct ahead *all;
	char session[ID_MAX];
	bool asked;
};

/* ---- sessions that nobody has got ---- */

static void nothing(void *ctx, const struct store_session *s)
{
	(void)ctx;
	(void)s;
}

static void forget(struct left *x)
{
	(void)unlinkat(x->all->dirfd, x->session, 0); /* else the next start tries again */
	list_remove(&x->link);
	free(x);
}

static void on_deleted(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct left *x = ctx;
	(void)fds;
	x->asked = false;
	if (reply->err.code == 0 || reply->err.code == -ENOENT)
		forget(x); /* else its jail is not gone yet: at the next tick */
}

static void remove_left(struct ahead *a)
{
	struct err e;
	list_for_each (x, &a->left, struct left, link) {
		if (x->asked)
			continue;
		if (store_session(a->d->store, x->session, nothing, NULL, &e) == 0) {
			forget(x); /* somebody has it */
			continue;
		}
		x->asked = true;
		jails_session_delete(a->d->jails, x->session, on_deleted, x);
	}
}

static void leave_session(struct ahead *a, const char *session)
{
	struct left *x = xnew(struct left);
	x->all = a;
	(void)str_copy(x->session, sizeof(x->session), session);
	list_append(&a->left, &x->link);
}

static void unused(void *ctx, const char *session)
{
	struct ahead *a = ctx;
	leave_session(a, session);
	remove_left(a);
}

static void used(void *ctx, const char *session)
{
	const struct ahead *a = ctx;
	(void)unlinkat(a->dirfd, session, 0);
}

static void find_left(struct ahead *a)
{
	int fd = openat(a->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		fd_close(fd);
		return;
	}
	for (struct dirent *x; (x = readdir(d));)
		if (id_valid(x->d_name, "ses"))
			leave_session(a, x->d_name);
	closedir(d);
}

/* ---- one on its way ---- */

static void failed(struct making *m, bool left, const struct err *e)
{
	struct ahead *a = m->all;
	log_warn("an agent of harness %s is not started ahead: %s", m->harness, e->text);
	a->rests_until_ms = clock_mono_ms() + FAILED_MS;
	if (left)
		unused(a, m->session);
}

static void on_done(void *ctx, int rc, bool left, const struct err *e)
{
	auto_free struct making *m = ctx;
	list_remove(&m->link);
	if (rc < 0)
		failed(m, left, e);
}

static int note(const struct making *m, struct err *e)
{
	int fd = openat(m->all->dirfd, m->session, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(e, "note of session %s", m->session);
	fd_close(fd);
	return 0;
}

static void begin(struct ahead *a, struct harness *h)
{
	struct err e;
	struct making *m = xnew(struct making);
	m->all = a;
	(void)str_copy(m->harness, sizeof(m->harness), h->name); /* a checked name */
	id_new("ses", m->session);
	list_append(&a->makings, &m->link);
	const struct early_spec spec = {.session = m->session,
	        .user = "",
	        .nobodys = true,
	        .seeds = true,
	        .starts = true,
	        .done = on_done,
	        .ctx = m};
	int rc = note(m, &e);
	if (rc == 0)
		rc = early_begin(a->d, h, &spec, &e);
	if (rc < 0)
		on_done(m, rc, true, &e);
}

/* ---- how many ---- */

static size_t on_their_way(const struct ahead *a, const char *harness)
{
	size_t n = 0;
	struct ahead *all = (struct ahead *)(uintptr_t)a;
	list_for_each (m, &all->makings, struct making, link)
		n += strcmp(m->harness, harness) == 0;
	return n;
}

struct look {
	struct ahead *all;
	bool wanted; /* by any harness */
};

static void look_at(void *ctx, struct harness *h)
{
	struct look *l = ctx;
	struct ahead *a = l->all;
	struct limits limits;
	struct err e;
	l->wanted |= h->warm_ahead > 0;
	if (h->warm_ahead == 0 || daemon_closing(a->d) || clock_mono_ms() < a->rests_until_ms ||
	        keeper_ahead(a->d->keeper, h->name) + on_their_way(a, h->name) >= h->warm_ahead ||
	        keeper_count(a->d->keeper) + a->d->early >= runs_room_to_wait(a->d->runs) ||
	        plan_check(a->d, h, &limits, &e) < 0)
		return;
	begin(a, h);
}

static void tick(struct op *op, int res, uint32_t flags)
{
	struct ahead *a = container_of(op, struct ahead, clock);
	struct look l = {.all = a};
	(void)res;
	(void)flags;
	if (a->stopped)
		return;
	remove_left(a);
	if (policies_ready(a->d->policies))
		harnesses_each(a->d->harnesses, look_at, &l);
	if (l.wanted || !list_empty(&a->left))
		loop_timeout(a->d->loop, op, TICK_MS, tick);
}

/* Harness files were read again: one of them may want some now. */
static void on_loaded(void *ctx)
{
	struct ahead *a = ctx;
	if (!a->stopped && !a->clock.inflight)
		loop_timeout(a->d->loop, &a->clock, 0, tick);
}

struct ahead *ahead_new(struct daemon *d, int dirfd)
{
	struct ahead *a = xnew(struct ahead);
	a->d = d;
	a->dirfd = dirfd;
	list_init(&a->makings);
	list_init(&a->left);
	static const struct keeper_news news = {.unused = unused, .used = used};
	keeper_tell(d->keeper, &news, a);
	return a;
}

void ahead_begin(struct ahead *a)
{
	find_left(a);
	harnesses_on_load(a->d->harnesses, on_loaded, a);
	on_loaded(a);
}

void ahead_stop(struct ahead *a)
{
	a->stopped = a->d->early_stopped = true;
}
