#include "supervisor/evict.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/eventlog.h"
#include "supervisor/keeper.h"
#include "supervisor/loop.h"
#include "supervisor/sessions.h"
#include "supervisor/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	AT_ONCE = 64, /* under way; the next look takes more */
	LOOKS = 10,   /* in the time that a session may be idle */
	LOOK_LEAST_MS = 20,
	LOOK_MOST_MS = 60000,
};

struct evict {
	struct daemon *d; /* borrowed */
	struct session_bounds bounds;
	struct list leaving; /* leaving.link: what the store does not say yet */
	size_t nleaving;
	struct op clock;
};

struct leaving {
	struct list link; /* in evict.leaving */
	struct evict *all;
	char session[ID_MAX];
};

/* ---- one ---- */

static void gone(void *ctx, int rc, const struct err *e)
{
	struct leaving *x = ctx;
	if (rc < 0)
		log_warn("s=%s is not evicted: %s", x->session, e->text);
	list_remove(&x->link);
	x->all->nleaving--;
	free(x);
}

static void tell(struct evict *v, const char *session, const char *reason, int64_t used_ms)
{
	struct err e;
	char used[CLOCK_TEXT_MAX];
	auto_buf struct buf b = BUF_INIT(1024);
	struct jw w = JW_INIT(&b);
	clock_rfc3339(used_ms, used);
	jw_str(&w, "reason", reason);
	jw_str(&w, "usedAt", used);
	if (eventlog_append(v->d->log, session, "", EVENT_SESSION_EVICTED, b.p, b.len, &e) < 0)
		log_warn("s=%s: %s", session, e.text);
}

static void evict(struct evict *v, const char *session, const char *reason, int64_t used_ms)
{
	struct daemon *d = v->d;
	bool keep = v->bounds.evict == SESSION_EVICT_KEEP;
	struct leaving *x = xnew(struct leaving);
	x->all = v;
	(void)str_copy(x->session, sizeof(x->session), session); /* an id of the store */
	list_append(&v->leaving, &x->link);
	v->nleaving++;
	d->stats.evictions++;
	log_info("s=%s is evicted (%s) and %s", session, reason, keep ? "kept" : "deleted");
	if (!keep) {
		sessions_delete(d->sessions, session, gone, x);
		return;
	}
	keeper_end(d->keeper, session, NULL, NULL);
	tell(v, session, reason, used_ms);
	store_evict_session(d->store, session, clock_wall_ms(), gone, x);
}

/* ---- the idle ones ---- */

struct idle {
	char id[ID_MAX];
	int64_t used_ms;
};

struct idlers {
	const struct evict *evict;
	size_t n, room;
	struct idle some[AT_ONCE];
};

static bool is_leaving(const struct evict *v, const char *session)
{
	list_for_each (x, &v->leaving, struct leaving, link)
		if (strcmp(x->session, session) == 0)
			return true;
	return false;
}

static void take_idle(void *ctx, const char *id, int64_t used_ms)
{
	struct idlers *i = ctx;
	if (i->n == i->room || is_leaving(i->evict, id) ||
	        !sessions_idle(i->evict->d->sessions, id))
		return;
	(void)str_copy(i->some[i->n].id, ID_MAX, id);
	i->some[i->n++].used_ms = used_ms;
}

/* Up to n of them that were last used at used_ms or before; how many went. */
static size_t evict_idle(struct evict *v, size_t n, int64_t used_ms, const char *reason)
{
	struct err e;
	struct idlers i = {.evict = v, .room = n < AT_ONCE ? n : AT_ONCE};
	/* Those that are in use are not known to the store, so as many more are looked at. */
	size_t looked = i.room + v->nleaving + sessions_live_count(v->d->sessions);
	if (store_idle(v->d->store, used_ms, (unsigned)looked, take_idle, &i, &e) < 0)
		log_warn("sessions that are idle: %s", e.text);
	for (size_t k = 0; k < i.n; k++)
		evict(v, i.some[k].id, reason, i.some[k].used_ms);
	return i.n;
}

/* ---- when ---- */

static void count_ready(void *ctx, const struct store_session *s)
{
	*(size_t *)ctx += s->evicted_ms == 0;
}

/* Of those that leave, how many the store still has as ready. */
static size_t leaving_ready(const struct evict *v)
{
	struct err e;
	size_t n = 0;
	list_for_each (x, &v->leaving, struct leaving, link)
		(void)!store_session(v->d->store, x->session, count_ready, &n, &e);
	return n;
}

static int make_room(void *ctx, struct err *e)
{
	struct evict *v = ctx;
	uint64_t max = v->bounds.max;
	if (!max)
		return 0;
	size_t ready = sessions_ready(v->d->sessions) - leaving_ready(v);
	size_t surplus = ready >= max ? ready - max + 1 : 0;
	while (surplus) { /* more than one where root has lowered it */
		size_t went = evict_idle(v, surplus, INT64_MAX, "room");
		if (went == 0)
			return err_set(e, -EDQUOT,
			        "there are %llu sessions, which is sessions.max, and each has runs "
			        "or "
			        "commands or is pinned; remedy: wait, unpin or delete one, or "
			        "raise "
			        "sessions.max",
			        (unsigned long long)max);
		surplus -= went;
	}
	return 0;
}

static int64_t next_look(const struct evict *v)
{
	uint64_t ms = v->bounds.idle_ms / LOOKS;
	return ms < LOOK_LEAST_MS ? LOOK_LEAST_MS : ms > LOOK_MOST_MS ? LOOK_MOST_MS : (int64_t)ms;
}

static void look(struct op *op, int res, uint32_t flags)
{
	struct evict *v = container_of(op, struct evict, clock);
	(void)flags;
	if (!v->bounds.idle_ms || v->d->draining)
		return;
	int64_t before = clock_wall_ms() - (int64_t)v->bounds.idle_ms;
	if (res == -ETIME && v->nleaving < AT_ONCE)
		(void)evict_idle(v, AT_ONCE - v->nleaving, before, "idle");
	loop_timeout(v->d->loop, &v->clock, next_look(v), look);
}

void evict_configure(struct evict *v, const struct session_bounds *bounds)
{
	v->bounds = *bounds;
	if (v->clock.inflight)
		loop_cancel(v->d->loop, &v->clock); /* looks anew at the new time */
	else if (bounds->idle_ms)
		loop_timeout(v->d->loop, &v->clock, next_look(v), look);
}

struct evict *evict_new(struct daemon *d)
{
	struct evict *v = xnew(struct evict);
	v->d = d;
	list_init(&v->leaving);
	sessions_guard(d->sessions, make_room, v);
	return v;
}
