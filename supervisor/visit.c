/*
 * Theory of operation.  A visit waits until a look finds its session with a jail to join or with
 * none at all; looks come with every turn of the loop, because whatever happened in it may have
 * changed a session.  It then asks for a worker, after the jail for it where there is none.  A jail
 * that has ended before the worker was there sends the visit back to wait.
 */
#include "supervisor/visit.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/exec_wait.h"
#include "supervisor/jails.h"
#include "supervisor/keeper.h"
#include "supervisor/loop.h"
#include "supervisor/policies.h"
#include "supervisor/purses.h"
#include "supervisor/quota.h"
#include "supervisor/runs.h"
#include "supervisor/sessions.h"
#include "supervisor/shared_jail.h"
#include "supervisor/store.h"

#include <stdlib.h>
#include <string.h>

enum {
	WAIT_MS = 30000, /* for a session that is between two jails, and for others' visits */
	TICK_MS = 100,
	OF_A_SESSION = 2, /* agentboxd gives a jail four workers, and its run wants some */
	OF_ALL = 32,
	WAITING = 128, /* looked at in each turn */
};

enum visit_state { WAITS, ASKED, HERE };

struct visit {
	struct list link; /* in visits.all */
	struct visits *all;
	char session[ID_MAX];
	enum visit_state state;
	int64_t deadline_ms;
	uint64_t turn;              /* of the loop in which it was looked at last */
	uint64_t jail, not_jail;    /* asked for a worker; known to have ended */
	struct session *makes;      /* borrowed: whose jail is being made, or NULL */
	struct shared_jail *shared; /* reference, or NULL: the jail is a run's */
	struct jail_watch watch;
	bool left; /* nobody waits: freed with the reply */
	visit_here_fn *here;
	void *ctx;
};

struct visits {
	struct daemon *d; /* borrowed */
	struct list all;  /* visit.link, in order of arrival */
	unsigned nwaiting, nhere;
	uint64_t turn;
	struct loop_hook hook;
	struct op tick;
};

/* ---- a jail for itself ---- */

struct guest {
	struct daemon *d;
	struct session *session; /* held */
};

static void guest_left(void *ctx)
{
	auto_free struct guest *g = ctx;
	store_use_session(g->d->store, g->session->id, clock_wall_ms());
	g->session->jail = 0;
	g->session->commands = NULL;
	runs_let_session(g->d->runs, g->session);
}

struct shared_jail *visit_jail(struct daemon *d, struct session *held, int64_t wall_ms)
{
	struct guest *g = xnew(struct guest);
	*g = (struct guest){d, held};
	return shared_jail_new(d, wall_ms, guest_left, g);
}

void visit_jail_made(struct shared_jail *x, struct session *held, uint64_t jail)
{
	shared_jail_made(x, jail);
	held->jail = jail;
	held->commands = x;
}

/* A command may have joined those that look at files. */
static bool only_visits(struct visits *v, const struct shared_jail *shared)
{
	unsigned n = 0;
	list_for_each (x, &v->all, struct visit, link)
		n += x->shared == shared;
	return n == shared_jail_commands(shared);
}

bool visit_passes(struct daemon *d, const char *session)
{
	struct session *x = sessions_live(d->sessions, session);
	if (!x || x->piped || x->lane.busy)
		return false;
	if (x->users == x->makers)
		return true;
	return x->users == x->makers + 1 && x->lane.held &&
	       (!x->commands || shared_jail_ends(x->commands) ||
	               only_visits(d->visits, x->commands));
}

/* ---- ending ---- */

static void leave_jail(struct visit *x)
{
	struct shared_jail *shared = take(x->shared);
	jails_unwatch(x->all->d->jails, &x->watch);
	if (shared)
		shared_jail_leave(shared);
	shared_jail_unref(shared);
}

static void set_state(struct visit *x, enum visit_state state)
{
	x->all->nwaiting -= x->state == WAITS;
	x->all->nhere -= x->state != WAITS;
	x->state = state;
	x->all->nwaiting += state == WAITS;
	x->all->nhere += state != WAITS;
}

static void visit_free(struct visit *x)
{
	leave_jail(x);
	set_state(x, WAITS);
	x->all->nwaiting--;
	list_remove(&x->link);
	free(x);
}

void visit_end(struct visit *x)
{
	if (!x)
		return;
	x->left = true;
	if (x->state != ASKED)
		visit_free(x);
}

static void tell(struct visit *x, int worker, const struct err *e)
{
	set_state(x, HERE);
	x->here(x->ctx, worker, e);
}

/* ---- the worker ---- */

static void on_worker(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct visit *x = ctx;
	bool ended = reply->err.code == -ESRCH || reply->err.code == -ENOENT;
	if (x->left) {
		set_state(x, HERE);
		visit_free(x);
	} else if (ended || reply->err.code == -EBUSY) {
		x->not_jail = ended ? x->jail : 0;
		leave_jail(x);
		set_state(x, WAITS);
	} else if (reply->err.code) {
		tell(x, -1, &reply->err);
	} else {
		tell(x, take_fd(fds[0]), NULL);
	}
}

static void ask_worker(struct visit *x, uint64_t jail)
{
	x->jail = jail;
	set_state(x, ASKED);
	jails_worker(x->all->d->jails, jail, on_worker, x);
}

/* ---- a jail where there is none ---- */

static void on_made(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct visit *x = ctx;
	struct session *held = take(x->makes);
	struct err e;
	(void)fds;
	if (!reply->err.code)
		visit_jail_made(x->shared, held, reply->jail);
	if (x->left) {
		set_state(x, HERE);
		visit_free(x);
	} else if (reply->err.code) {
		tell(x, -1, &reply->err);
	} else if (reply->disk == JAIL_DISK_TMPFS) {
		err_set(&e, -ESRCH,
		        "session %s keeps its workspace in memory (`filesystem.volatile` of its "
		        "policy): there are files only while a run goes on",
		        x->session);
		tell(x, -1, &e);
	} else {
		ask_worker(x, reply->jail);
	}
}

/* Another limit of the disk than its runs have would have to be set and taken back. */
static int find_policy(struct daemon *d, const char *session, struct jail_make *m,
        const struct policy **ret, struct err *e)
{
	int rc = quota_policy(d, session, ret, &m->narrow, e);
	if (rc < 0)
		return rc;
	m->policy = (uint32_t)rc;
	m->policy_generation = policies_set(d->policies)->generation;
	return policies_met(d->policies, *ret, e);
}

static int make(struct visit *x, struct err *e)
{
	struct daemon *d = x->all->d;
	const struct policy *p;
	struct session *held = NULL;
	struct jail_make m = {.flags = JAIL_MAKE_SESSION};
	memcpy(m.session, x->session, sizeof(m.session));
	int rc = find_policy(d, x->session, &m, &p, e);
	if (rc == 0)
		rc = runs_keep_session(d->runs, x->session, &held, e);
	if (!held)
		return rc;
	rc = purses_fill(d, p, x->session, held->user, &m.purse, e);
	if (rc < 0) {
		runs_let_session(d->runs, held);
		return rc;
	}
	(void)str_copy(held->policy, sizeof(held->policy), p->name);
	x->makes = held;
	x->shared = visit_jail(d, held, (int64_t)p->limits.wall_ms);
	set_state(x, ASKED);
	jails_make(d->jails, &m, -1, &x->watch, on_made, x);
	return 0;
}

/* ---- waiting ---- */

static bool too_many(const struct visit *x)
{
	unsigned n = 0;
	list_for_each (at, &x->all->all, struct visit, link)
		n += at->state != WAITS && strcmp(at->session, x->session) == 0;
	return n >= OF_A_SESSION || x->all->nhere >= OF_ALL;
}

/* It has the workspace and is about to end, or has and is looked through. */
static bool ends(const struct daemon *d, const struct session *live)
{
	return !jails_find(d->jails, live->jail) ||
	       (live->commands && shared_jail_ends(live->commands));
}

/* Goes in where it can.  -errno: it never will. */
static int go_in(struct visit *x, struct err *e)
{
	struct daemon *d = x->all->d;
	struct session *live = sessions_live(d->sessions, x->session);
	if (too_many(x) || exec_must_wait(live, x->not_jail))
		return 0;
	if (live && live->jail && ends(d, live))
		return 0;
	if (live && live->jail) {
		x->shared = live->commands ? shared_jail_join(live->commands) : NULL;
		ask_worker(x, live->jail);
		return 0;
	}
	uint64_t waits = keeper_jail(d->keeper, x->session);
	if (waits && waits != x->not_jail) {
		ask_worker(x, waits);
		return 0;
	}
	return make(x, e);
}

static void look_at(struct visit *x)
{
	struct err e;
	if (clock_mono_ms() >= x->deadline_ms)
		err_set(&e, -EBUSY,
		        "runs, commands or other requests for files have session %s all this time: "
		        "try again",
		        x->session);
	else if (go_in(x, &e) == 0)
		return;
	tell(x, -1, &e);
}

static struct visit *next_to_look(struct visits *v)
{
	list_for_each (x, &v->all, struct visit, link)
		if (x->state == WAITS && x->turn != v->turn)
			return x;
	return NULL;
}

/* What one is told may end others, so the next is looked for from the start. */
static void look(struct loop_hook *h)
{
	struct visits *v = container_of(h, struct visits, hook);
	v->turn++;
	for (struct visit *x; v->nwaiting && (x = next_to_look(v));) {
		x->turn = v->turn;
		look_at(x);
	}
}

static void tick(struct op *op, int res, uint32_t flags)
{
	struct visits *v = container_of(op, struct visits, tick);
	(void)res;
	(void)flags;
	if (v->nwaiting)
		loop_timeout(v->d->loop, &v->tick, TICK_MS, tick);
}

/* ---- life ---- */

struct visits *visits_new(struct daemon *d)
{
	struct visits *v = xnew(struct visits);
	v->d = d;
	list_init(&v->all);
	v->hook.run = look;
	loop_hook(d->loop, &v->hook);
	return v;
}

void visits_free(struct visits *v)
{
	free(v);
}

static void nothing(void *ctx, const struct store_session *s)
{
	(void)ctx;
	(void)s;
}

struct visit *visit_begin(
        struct visits *v, const char *session, visit_here_fn *here, void *ctx, struct err *e)
{
	if (v->d->draining) {
		err_set(e, -ESHUTDOWN, "the daemon is about to stop");
		return NULL;
	}
	if (v->nwaiting >= WAITING) {
		err_set(e, -EAGAIN, "%u requests for files wait already", v->nwaiting);
		return NULL;
	}
	if (!sessions_live(v->d->sessions, session) &&
	        store_session(v->d->store, session, nothing, NULL, e) < 0)
		return NULL;
	struct visit *x = xnew(struct visit);
	x->all = v;
	(void)str_copy(x->session, sizeof(x->session), session); /* known: an id */
	x->deadline_ms = clock_mono_ms() + WAIT_MS;
	x->here = here;
	x->ctx = ctx;
	list_init(&x->watch.link);
	list_append(&v->all, &x->link);
	v->nwaiting++;
	if (!v->tick.inflight)
		loop_timeout(v->d->loop, &v->tick, TICK_MS, tick);
	return x;
}
