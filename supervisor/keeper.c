/*
 * Theory of operation.  One that waits is in `waiting`, oldest first.  What is heard of it while it
 * waits or is being claimed only marks it; its end is always the same: stdin is closed if it has
 * come to rest a moment ago (agents write what was said to disk then), else the jail is killed; the
 * jail's end frees it.  Until then it is in `leaving`, for whoever wants its session.
 */
#include "supervisor/keeper.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/loop.h"
#include "supervisor/pump.h"

#include <errno.h>
#include <string.h>

enum {
	LOOK_MS = 1000,      /* at its memory */
	FRESH_MS = 1000,     /* after its last word it may have something to write still */
	SAID_MAX = 64 << 10, /* bytes of what says nothing, while it waits */
};

struct kept {
	struct list link; /* in keeper.waiting or leaving, or in none: claimed */
	struct keeper *all;
	struct kept_agent a; /* owned */
	struct jail_watch watch;
	struct op clock;
	int64_t since_ms, look_ms, kill_ms; /* monotonic */
	size_t said;
	bool unfit;    /* something was heard of it */
	bool claimed;  /* a run is about to have it */
	bool assigned; /* started ahead, its session is somebody's now */
	bool ending, killed, gone, asked, freed;
	struct list wanted; /* of struct want */
};

struct want {
	struct list link;
	void (*done)(void *ctx);
	void *ctx;
};

struct keeper {
	struct daemon *d; /* borrowed */
	struct list waiting, leaving;
	size_t n;                       /* waiting */
	const struct keeper_news *news; /* static */
	void *ctx;
};

struct keeper *keeper_new(struct daemon *d)
{
	struct keeper *k = xnew(struct keeper);
	k->d = d;
	list_init(&k->waiting);
	list_init(&k->leaving);
	return k;
}

/* ---- its end ---- */

static void bury(struct kept *x)
{
	if (!x->freed || x->asked || x->clock.inflight)
		return;
	free(x->a.resume);
	free(x->a.live);
	free(x);
}

static bool is_nobodys(const struct kept *x)
{
	return x->a.nobodys && !x->assigned;
}

static void forget(struct kept *x)
{
	if (is_nobodys(x))
		x->all->news->unused(x->all->ctx, x->a.session);
	list_remove(&x->link);
	jails_unwatch(x->all->d->jails, &x->watch);
	pump_close(take(x->a.pump));
	if (x->clock.inflight)
		loop_cancel(x->all->d->loop, &x->clock);
	x->freed = true;
	list_for_each (w, &x->wanted, struct want, link) {
		list_remove(&w->link);
		w->done(w->ctx);
		free(w);
	}
	bury(x);
}

static void count(struct keeper *k)
{
	k->d->stats.agents_waiting = k->n;
}

/* It waits no more. */
static void leave(struct kept *x)
{
	list_remove(&x->link);
	list_init(&x->link);
	x->all->n--;
	count(x->all);
}

static void kill_it(struct kept *x)
{
	if (x->killed || x->gone)
		return;
	x->killed = true;
	jails_kill(x->all->d->jails, x->a.jail);
}

static void on_clock(struct op *op, int res, uint32_t flags);

static void begin_end(struct kept *x, const char *why)
{
	if (x->ending)
		return;
	struct keeper *k = x->all;
	int64_t now = clock_mono_ms();
	x->ending = true;
	list_append(&k->leaving, &x->link);
	log_info("s=%s: the agent of jail %llu ends: %s", x->a.session,
	        (unsigned long long)x->a.jail, why);
	x->kill_ms = x->since_ms + FRESH_MS;
	/* One that was told nothing has nothing to write. */
	if (x->a.ahead || now >= x->kill_ms || pump_write(x->a.pump, "", 0, true) < 0)
		kill_it(x);
	if (x->clock.inflight)
		loop_cancel(k->d->loop, &x->clock); /* comes back, and is set anew there */
	else
		on_clock(&x->clock, 0, 0);
}

static void end(struct kept *x, const char *why)
{
	if (!x->ending)
		leave(x);
	begin_end(x, why);
}

/* Once it is claimed the run's start decides. */
static void is_unfit(struct kept *x, const char *why)
{
	x->unfit = true;
	if (!x->claimed)
		end(x, why);
}

/* ---- what is heard of it ---- */

static void on_exited(struct jail_watch *w, const struct jail_exited *m)
{
	struct kept *x = container_of(w, struct kept, watch);
	(void)m;
	is_unfit(x, "it has exited");
	if (x->ending)
		kill_it(x);
}

static void on_gone(struct jail_watch *w, const struct jail_gone *m)
{
	struct kept *x = container_of(w, struct kept, watch);
	(void)m;
	x->gone = true;
	is_unfit(x, "its jail has ended");
	if (x->claimed)
		return; /* keeper_end_claimed */
	jails_release(x->all->d->jails, x->a.jail);
	forget(x);
}

static void on_stats(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct kept *x = ctx;
	(void)fds;
	x->asked = false;
	if (x->freed) {
		bury(x);
		return;
	}
	x->a.memory_bytes = reply->err.code ? 0 : reply->memory_bytes;
	if (x->a.memory_bytes == 0)
		is_unfit(x, "its memory cannot be measured");
	else if (x->a.memory_bytes > x->a.memory_most)
		is_unfit(x, "it holds more than warm.memory");
}

static void on_line(void *ctx, enum pump_stream s, const char *p, size_t n, bool whole)
{
	struct kept *x = ctx;
	if (s == PUMP_STDOUT && !x->ending && (!whole || !x->a.driver->idle(p, n)))
		is_unfit(x, "it has said something while it waited");
}

static void on_bytes(void *ctx, enum pump_stream s, const char *p, size_t n)
{
	struct kept *x = ctx;
	(void)s;
	(void)p;
	x->said += n;
	if (x->said > SAID_MAX && !x->ending)
		is_unfit(x, "it says too much while it waits");
}

static void on_stdin_ended(void *ctx)
{
	struct kept *x = ctx;
	jails_stdin_end(x->all->d->jails, x->a.jail);
	if (!x->ending)
		is_unfit(x, "it reads nothing more");
}

static void on_drained(void *ctx)
{
	struct kept *x = ctx;
	if (!x->ending)
		is_unfit(x, "it has closed its output");
}

static const struct pump_calls pump_calls = {
        .line = on_line,
        .bytes = on_bytes,
        .stdin_ended = on_stdin_ended,
        .drained = on_drained,
};

/* ---- time ---- */

static void look(struct kept *x, int64_t now)
{
	if (now - x->since_ms >= (int64_t)x->a.idle_ms) {
		is_unfit(x, "warm.idleMs is over");
		return;
	}
	if (now < x->look_ms || x->asked)
		return;
	x->look_ms = now + LOOK_MS;
	x->asked = true;
	jails_stats(x->all->d->jails, x->a.jail, on_stats, x);
}

static void on_clock(struct op *op, int res, uint32_t flags)
{
	struct kept *x = container_of(op, struct kept, clock);
	int64_t now = clock_mono_ms();
	(void)res;
	(void)flags;
	if (x->freed) {
		bury(x);
		return;
	}
	if (x->ending && now >= x->kill_ms)
		kill_it(x);
	else if (!x->ending && !x->claimed)
		look(x, now);
	int64_t next = x->ending && !x->killed ? x->kill_ms - now : LOOK_MS;
	int64_t left = x->since_ms + (int64_t)x->a.idle_ms - now;
	if (!x->ending && left < next)
		next = left;
	if (!op->inflight)
		loop_timeout(x->all->d->loop, op, next > 0 ? next : 0, on_clock);
}

/* ---- taking and giving ---- */

void keeper_take(struct keeper *k, const struct kept_agent *a, bool fit)
{
	struct kept *x = xnew(struct kept);
	x->all = k;
	x->a = *a;
	x->since_ms = clock_mono_ms();
	x->look_ms = x->since_ms + LOOK_MS;
	list_init(&x->wanted);
	list_init(&x->watch.link);
	x->watch.exited = on_exited;
	x->watch.gone = on_gone;
	jails_watch(k->d->jails, a->jail, &x->watch);
	if (x->a.pump)
		pump_pass(x->a.pump, &pump_calls, x);
	list_append(&k->waiting, &x->link);
	k->n++;
	count(k);
	if (!fit) {
		end(x, x->a.pump ? "it cannot wait" : "there is nothing in it that waits");
		return;
	}
	if (a->ahead)
		pump_go(x->a.pump);
	on_clock(&x->clock, 0, 0);
}

static struct kept *find(struct list *in, const char *session)
{
	list_for_each (x, in, struct kept, link)
		if (strcmp(x->a.session, session) == 0)
			return x;
	return NULL;
}

static struct kept *find_any(const struct keeper *k, const char *session)
{
	struct keeper *all = (struct keeper *)(uintptr_t)k;
	struct kept *x = find(&all->waiting, session);
	return x ? x : find(&all->leaving, session);
}

bool keeper_has(const struct keeper *k, const char *session)
{
	return find_any(k, session) != NULL;
}

uint64_t keeper_jail(const struct keeper *k, const char *session)
{
	const struct kept *x = find_any(k, session);
	return x && !x->unfit && !x->ending && !x->claimed ? x->a.jail : 0;
}

static bool same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static struct kept *find_fit(
        const struct keeper *k, const char *session, const char *key, const char *resume)
{
	struct keeper *all = (struct keeper *)(uintptr_t)k;
	struct kept *x = find(&all->waiting, session);
	bool fits = x && !x->unfit && strcmp(x->a.key, key) == 0 && same(x->a.resume, resume) &&
	            pump_idle(x->a.pump);
	return fits ? x : NULL;
}

bool keeper_fits(const struct keeper *k, const char *session, const char *key, const char *resume)
{
	return find_fit(k, session, key, resume) != NULL;
}

struct kept *keeper_claim(
        struct keeper *k, const char *session, const char *key, const char *resume)
{
	struct kept *x = find_fit(k, session, key, resume);
	if (!x)
		return NULL;
	leave(x);
	x->claimed = x->assigned = true;
	return x;
}

const struct kept_agent *kept_agent(const struct kept *x)
{
	return &x->a;
}

bool kept_lives(const struct kept *x)
{
	return !x->unfit && pump_idle(x->a.pump);
}

struct pump *kept_pass(struct kept *x)
{
	struct pump *p = take(x->a.pump);
	if (x->a.nobodys)
		x->all->news->used(x->all->ctx, x->a.session);
	forget(x);
	return p;
}

void keeper_end_claimed(struct kept *x)
{
	if (!x)
		return;
	x->claimed = false;
	begin_end(x, "it was not there when it was wanted");
	if (!x->gone)
		return;
	jails_release(x->all->d->jails, x->a.jail);
	forget(x);
}

/* ---- ending ---- */

void keeper_end(struct keeper *k, const char *session, void (*done)(void *ctx), void *ctx)
{
	struct kept *x = find_any(k, session);
	if (x && done) {
		struct want *w = xnew(struct want);
		w->done = done;
		w->ctx = ctx;
		list_append(&x->wanted, &w->link);
	}
	if (x)
		end(x, "its session is wanted for something else");
	else if (done)
		done(ctx);
}

void keeper_end_all(struct keeper *k, const char *why)
{
	list_for_each (x, &k->waiting, struct kept, link)
		end(x, why);
}

void keeper_make_room(struct keeper *k, size_t room)
{
	list_for_each (x, &k->waiting, struct kept, link) {
		if (k->n <= room)
			return;
		end(x, "others have waited less");
	}
}

/* ---- those that were started ahead ---- */

void keeper_tell(struct keeper *k, const struct keeper_news *news, void *ctx)
{
	k->news = news;
	k->ctx = ctx;
}

size_t keeper_count(const struct keeper *k)
{
	return k->n;
}

static struct kept *nobodys(const struct keeper *k, const char *harness, size_t *ret_n)
{
	struct kept *oldest = NULL;
	struct keeper *all = (struct keeper *)(uintptr_t)k;
	list_for_each (x, &all->waiting, struct kept, link) {
		if (!is_nobodys(x) || strcmp(x->a.harness, harness) != 0)
			continue;
		oldest = oldest ? oldest : x;
		++*ret_n;
	}
	return oldest;
}

size_t keeper_ahead(const struct keeper *k, const char *harness)
{
	size_t n = 0;
	(void)nobodys(k, harness, &n);
	return n;
}

const char *keeper_offer(const struct keeper *k, const char *harness)
{
	size_t n = 0;
	const struct kept *x = nobodys(k, harness, &n);
	return x ? x->a.session : NULL;
}

void keeper_assign(struct keeper *k, const char *session)
{
	struct kept *x = find(&k->waiting, session);
	if (x)
		x->assigned = true;
}

void keeper_show(const struct keeper *k, uint64_t jail, struct jw *w)
{
	int64_t now = clock_mono_ms();
	struct keeper *all = (struct keeper *)(uintptr_t)k;
	list_for_each (x, &all->waiting, struct kept, link) {
		if (x->a.jail != jail)
			continue;
		jw_open(w, "waits", '{');
		jw_str(w, "harness", x->a.harness);
		if (x->a.ahead)
			jw_bool(w, "ahead", true);
		else
			jw_str(w, "lastRunId", x->a.run);
		jw_int(w, "idleMs", now - x->since_ms);
		jw_int(w, "leftMs", x->since_ms + (int64_t)x->a.idle_ms - now);
		jw_int(w, "memoryBytes", (int64_t)x->a.memory_bytes);
		jw_close(w, '}');
	}
}
