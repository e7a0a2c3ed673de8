/*
 * Theory of operation.  A row is due, flying (asked, and the answer is awaited until deadline_ms),
 * or its outcome is being written.  Rows that are due are read from the store, which shows what is
 * committed: so a flight is kept until its outcome is, and rows of flights are passed over.  All is
 * done in a hook of the loop's turn, which whoever changes something asks for by uploads_wake; a
 * timer asks for it when the next row is due.
 */
#include "supervisor/uploads.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/policies.h"
#include "supervisor/uploads_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { ROWS = UPLOAD_FLIGHTS * (LANES + 1) };

static const enum object_state states[LANES] = {
        [LANE_PUT] = OBJECT_PENDING, [LANE_DELETE] = OBJECT_DELETING};

/* ---- rows that are due ---- */

struct due {
	struct uploads *uploads;
	enum upload_lane lane;
	unsigned most;
};

static bool flies(const struct uploads *u, const struct store_object *x)
{
	list_for_each (f, &u->flights, struct flight, link)
		if (f->n == x->n && strcmp(f->run, x->run) == 0)
			return true;
	return false;
}

static void take_due(void *ctx, const struct store_object *x)
{
	struct due *d = ctx;
	struct lane *l = &d->uploads->lanes[d->lane];
	if (l->nflights < d->most && !flies(d->uploads, x))
		uploads_fly(d->uploads, d->lane, x);
}

static void begin(struct uploads *u, enum upload_lane lane, int64_t now)
{
	struct err e;
	struct lane *l = &u->lanes[lane];
	struct due d = {u, lane, l->failures >= UPLOAD_FLIGHTS ? 1 : UPLOAD_FLIGHTS};
	if (now < l->next_ms || l->nflights >= d.most)
		return;
	/* Those that are passed over are flights, of which there are fewer. */
	if (store_objects_due(
	            u->daemon->store, states[lane], clock_wall_ms(), ROWS, take_due, &d, &e) < 0)
		log_err("artifacts to be uploaded: %s", e.text);
}

/* ---- the turn ---- */

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Monotonic: when the lane has to be looked at again; INT64_MAX: when something happens. */
static int64_t next_of(const struct uploads *u, enum upload_lane lane, int64_t now)
{
	const struct lane *l = &u->lanes[lane];
	int64_t wall = clock_wall_ms();
	if (l->nflights)
		return INT64_MAX; /* each that ends looks again */
	int64_t due = store_objects_next(u->daemon->store, states[lane], 0);
	if (!due)
		return INT64_MAX;
	int64_t at = due > wall ? now + (due - wall) : now;
	return at < l->next_ms ? l->next_ms : at;
}

static void on_timer(struct op *op, int res, uint32_t flags)
{
	(void)res;
	(void)flags;
	uploads_wake(container_of(op, struct uploads, timer));
}

static void arm(struct uploads *u, int64_t now)
{
	int64_t at = INT64_MAX;
	for (int i = 0; i < LANES; i++)
		at = earlier(at, next_of(u, (enum upload_lane)i, now));
	list_for_each (f, &u->flights, struct flight, link)
		if (f->number)
			at = earlier(at, f->deadline_ms);
	list_for_each (x, &u->links, struct link_asked, link)
		at = earlier(at, x->deadline_ms);
	if (at == INT64_MAX)
		return;
	if (u->timer.inflight) { /* when it comes, or is gone, there is another look */
		if (at < u->timer_ms) {
			u->timer_ms = at;
			loop_cancel(u->daemon->loop, &u->timer);
		}
		return;
	}
	u->timer_ms = at;
	loop_timeout(u->daemon->loop, &u->timer, at > now ? at - now : 0, on_timer);
}

static void turn(struct loop_hook *l)
{
	struct uploads *u = container_of(l, struct uploads, hook);
	int64_t now = clock_mono_ms();
	if (!u->dirty || u->stopped || !u->configured)
		return;
	u->dirty = false;
	uploads_late(u, now);
	uploads_links_late(u, now);
	if (!u->resumed)
		return;
	for (int i = 0; i < LANES; i++)
		begin(u, (enum upload_lane)i, now);
	arm(u, now);
}

void uploads_wake(struct uploads *u)
{
	if (!u->dirty)
		loop_again(u->daemon->loop);
	u->dirty = true;
}

/* ---- life ---- */

const char *uploads_place(const struct uploads *u)
{
	return u->configured && u->bucket.on ? u->place : NULL;
}

void uploads_configure(struct uploads *u)
{
	const struct policy_set *set = policies_set(u->daemon->policies);
	const struct bucket *b = &set->config.bucket;
	/* Mended, or moved, or another secret: what waits need not wait out its pause. */
	for (int i = 0; i < LANES; i++)
		u->lanes[i].failures = 0, u->lanes[i].next_ms = 0;
	u->bucket = *b;
	bucket_place(b, u->place);
	u->generation = set->generation;
	u->configured = true;
	uploads_wake(u);
}

void uploads_resume(struct uploads *u)
{
	u->resumed = true;
	uploads_tell_again(u);
	uploads_wake(u);
}

void uploads_stop(struct uploads *u)
{
	u->stopped = true;
}

struct uploads *uploads_new(struct daemon *d)
{
	struct uploads *u = xnew(struct uploads);
	u->daemon = d;
	list_init(&u->flights);
	list_init(&u->links);
	list_init(&u->tellings);
	/* Another supervisor's numbers are others. */
	(void)!getrandom(&u->last_number, sizeof(u->last_number), 0);
	u->last_number >>= 1;
	u->hook.run = turn;
	loop_hook(d->loop, &u->hook);
	return u;
}
