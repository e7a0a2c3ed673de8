/*
 * Theory of operation.  Runs are gone through in the order of their ends, once for each kind of
 * thing that may go.  `done` is up to where all has been done, so that the next pass begins there;
 * a run that is spared holds it back, and the pass goes on behind it.
 */
#include "supervisor/retention.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/artifacts.h"
#include "supervisor/daemon.h"
#include "supervisor/eventlog.h"
#include "supervisor/journal.h"
#include "supervisor/keeper.h"
#include "supervisor/loop.h"
#include "supervisor/sessions.h"
#include "supervisor/store.h"
#include "supervisor/uploads.h"

enum {
	STEP_MS = 1, /* between two runs: others have the loop meanwhile */
	ROWS = 32,   /* looked at in a step */
	FILES = 64,  /* removed in a step */
	SOONEST_MS = 100,
	LATEST_MS = 10000,
	FEW_RUNS = 1000, /* so many are counted in no time */
	FEW_MS = 1000,
};

enum kind { KIND_EVENTS, KIND_ARTIFACTS, KIND_RUNS, KINDS };

struct place {
	int64_t ms;
	char run[ID_MAX];
};

struct retention_work {
	struct daemon *d; /* borrowed */
	struct retention keep;
	struct op clock;
	bool on;      /* something is not kept for ever */
	bool passing; /* and a pass is under way: */
	enum kind kind;
	int64_t cut[KINDS]; /* what ended before this goes; 0: nothing does */
	struct place at;
	int64_t spared_ms; /* the first that was spared in it */
	struct place done[KINDS];
	bool cannot; /* said once: the file system makes no holes */
};

/* ---- one run ---- */

struct row {
	char id[ID_MAX], session[ID_MAX];
	int64_t ended_ms;
	unsigned gone;
	bool owed;
};

static bool spared(const struct retention_work *w, const struct row *x)
{
	return x->owed || sessions_live(w->d->sessions, x->session) ||
	       keeper_has(w->d->keeper, x->session);
}

static void on_written(void *ctx, int rc, const struct err *e)
{
	struct retention_work *w = ctx;
	if (rc == 0) {
		uploads_wake(w->d->uploads); /* for what was uploaded of it */
		return;
	}
	log_err("retention: %s", e->text);
	for (int k = 0; k < KINDS; k++)
		w->done[k] = (struct place){0}; /* it is found again */
}

/* The session's events below all that is kept of it. */
static int cut_events(struct retention_work *w, const struct row *x, struct err *e)
{
	uint64_t seq;
	int64_t cut =
	        w->cut[KIND_EVENTS] > w->cut[KIND_RUNS] ? w->cut[KIND_EVENTS] : w->cut[KIND_RUNS];
	int rc = store_kept_from(w->d->store, x->session, cut, &seq, e);
	if (rc == 0)
		rc = eventlog_cut(w->d->log, x->session, seq, e);
	if (rc != -EOPNOTSUPP)
		return rc;
	if (!w->cannot)
		log_warn("retention: %s: events stay", e->text);
	w->cannot = true;
	return 0;
}

/* 1: there is more of it. */
static int forget(struct retention_work *w, const struct row *x, struct err *e)
{
	struct daemon *d = w->d;
	int rc = 0;
	if (w->kind != KIND_ARTIFACTS)
		rc = cut_events(w, x, e);
	if (rc == 0 && w->kind != KIND_EVENTS)
		rc = artifacts_remove_some(d->artifacts_fd, x->id, FILES, e);
	if (rc != 0)
		return rc;
	if (w->kind != KIND_RUNS) {
		store_gone(d->store, x->id,
		        w->kind == KIND_EVENTS ? STORE_GONE_EVENTS : STORE_GONE_ARTIFACTS,
		        on_written, w);
		return 0;
	}
	journal_remove(d->journals_fd, x->id);
	store_drop_run(d->store, x->id, on_written, w);
	d->stats.runs_forgotten++;
	return 0;
}

/* ---- a pass ---- */

struct rows {
	struct row rows[ROWS];
	size_t n;
};

static void take_row(void *ctx, const struct store_ended *x)
{
	struct rows *all = ctx;
	struct row *r = &all->rows[all->n++];
	*r = (struct row){.ended_ms = x->ended_ms, .gone = x->gone, .owed = x->owed};
	(void)str_copy(r->id, sizeof(r->id), x->id); /* ids of ours */
	(void)str_copy(r->session, sizeof(r->session), x->session);
}

static bool gone(const struct retention_work *w, const struct row *x)
{
	return (w->kind == KIND_EVENTS && (x->gone & STORE_GONE_EVENTS)) ||
	       (w->kind == KIND_ARTIFACTS && (x->gone & STORE_GONE_ARTIFACTS));
}

/* Of the rows up to the first one with work, and that. */
static void go_through(struct retention_work *w, const struct rows *all)
{
	struct err e;
	for (size_t i = 0; i < all->n; i++) {
		const struct row *x = &all->rows[i];
		bool spare = !gone(w, x) && spared(w, x), work = !gone(w, x) && !spare;
		int rc = work ? forget(w, x, &e) : 0;
		if (rc > 0)
			return;
		if (rc < 0)
			log_warn("retention: %s", e.text);
		if ((spare || rc < 0) && !w->spared_ms)
			w->spared_ms = x->ended_ms;
		w->at.ms = x->ended_ms;
		(void)str_copy(w->at.run, sizeof(w->at.run), x->id);
		if (work)
			return;
	}
}

static void next_kind(struct retention_work *w)
{
	struct place *done = &w->done[w->kind];
	*done = w->at;
	if (w->spared_ms)
		*done = (struct place){.ms = w->spared_ms - 1};
	w->passing = ++w->kind < KINDS;
	if (!w->passing)
		return;
	w->spared_ms = 0;
	w->at = w->done[w->kind];
}

static void step(struct retention_work *w)
{
	struct err e;
	struct rows all = {.n = 0};
	int rc = w->cut[w->kind] ? store_ended(w->d->store, w->at.ms, w->at.run, w->cut[w->kind],
	                                   ROWS, take_row, &all, &e)
	                         : 0;
	if (rc < 0)
		log_warn("retention: %s", e.text);
	if (rc < 0 || all.n == 0)
		next_kind(w);
	else
		go_through(w, &all);
}

static int64_t before(uint64_t kept_ms, int64_t now)
{
	return kept_ms && (uint64_t)now > kept_ms ? now - (int64_t)kept_ms : 0;
}

static void begin(struct retention_work *w)
{
	struct err e;
	int64_t now = clock_wall_ms(), nth = 0;
	w->cut[KIND_EVENTS] = before(w->keep.events_ms, now);
	w->cut[KIND_ARTIFACTS] = before(w->keep.artifacts_ms, now);
	w->cut[KIND_RUNS] = before(w->keep.runs_ms, now);
	if (w->keep.runs_max && store_nth_end(w->d->store, w->keep.runs_max - 1, &nth, &e) < 0)
		log_warn("retention: %s", e.text);
	if (nth > w->cut[KIND_RUNS])
		w->cut[KIND_RUNS] = nth;
	w->kind = 0;
	w->spared_ms = 0;
	w->at = w->done[0];
	w->passing = true;
}

/* ---- the clock ---- */

static int64_t pause_ms(const struct retention_work *w)
{
	const uint64_t all[] = {w->keep.runs_ms, w->keep.events_ms, w->keep.artifacts_ms};
	uint64_t ms = w->keep.runs_max && w->keep.runs_max <= FEW_RUNS ? FEW_MS : LATEST_MS;
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i] && all[i] / 10 < ms)
			ms = all[i] / 10;
	return ms < SOONEST_MS ? SOONEST_MS : (int64_t)ms;
}

static void tick(struct op *op, int res, uint32_t flags)
{
	struct retention_work *w = container_of(op, struct retention_work, clock);
	(void)res;
	(void)flags;
	if (!w->on || w->d->draining)
		return;
	if (!w->passing)
		begin(w);
	if (!w->d->backups)
		step(w);
	loop_timeout(w->d->loop, op, w->passing && !w->d->backups ? STEP_MS : pause_ms(w), tick);
}

struct retention_work *retention_new(struct daemon *d)
{
	struct retention_work *w = xnew(struct retention_work);
	w->d = d;
	return w;
}

void retention_configure(struct retention_work *w, const struct retention *keep)
{
	w->keep = *keep;
	w->on = keep->runs_ms || keep->runs_max || keep->events_ms || keep->artifacts_ms;
	for (int k = 0; k < KINDS; k++)
		w->done[k] = (struct place){0};
	w->passing = false;
	if (w->on && !w->clock.inflight)
		loop_timeout(w->d->loop, &w->clock, SOONEST_MS, tick);
}
