/*
 * Theory of operation.  A user stands in its tenant's `turns` while one of its
 * sessions is ready, a tenant in the scheduler's while one of its users does.  Whoever is
 * owed most by share.h is asked for a job that fits; who has none is passed over in that round.
 *
 * A reservation is the first job that did not fit when its turn came.  What starts
 * while it waits may promise, all together, at most what it leaves of the whole: so
 * it starts at the latest when all that ran before has ended, however much goes on beside it.
 */
#include "supervisor/sched.h"

#include "base/mem.h"
#include "policy/policy.h"
#include "supervisor/hash.h"
#include "supervisor/owner.h"
#include "supervisor/sched_private.h"

#include <assert.h>
#include <string.h>

enum { LOOK_AT = 64 /* jobs of one user that are tried for one that fits */ };

/* ---- life ---- */

struct sched *sched_new(size_t max_running, size_t max_waiting)
{
	struct sched *s = xnew(struct sched);
	s->most = (struct sched_limits){.running = max_running, .waiting = max_waiting};
	for (size_t i = 0; i < SCHED_BUCKETS; i++)
		list_init(&s->users[i]);
	list_init(&s->everybody);
	list_init(&s->tenants);
	list_init(&s->turns);
	return s;
}

static void free_shares(struct sched *s)
{
	free((void *)(uintptr_t)s->most.shares);
}

void sched_free(struct sched *s)
{
	if (!s)
		return;
	list_for_each (u, &s->everybody, struct sched_user, all) {
		free(u->owner);
		free(u);
	}
	list_for_each (t, &s->tenants, struct sched_tenant, link)
		free(t);
	free_shares(s);
	free(s);
}

void sched_session_init(struct sched_session *x)
{
	memset(x, 0, sizeof(*x));
	list_init(&x->jobs);
	list_init(&x->ready);
}

/* ---- tenants and users ---- */

/* user NULL: of the tenant itself. */
static const struct run_share *share_of(const struct sched *s, const char *tenant, const char *user)
{
	for (size_t i = 0; i < s->most.nshares; i++) {
		const struct run_share *x = &s->most.shares[i];
		if (strcmp(x->tenant, tenant) == 0 && strcmp(x->user, user ? user : "") == 0)
			return x;
	}
	return NULL;
}

static void limit_party(struct party *p, const struct run_share *x, size_t running, size_t waiting)
{
	p->most_running = x && x->max ? x->max : running;
	p->most_waiting = x && x->queue ? x->queue : waiting;
}

static double weight_of(const struct run_share *x)
{
	return x && x->weight ? x->weight : 1;
}

static void limit_user(const struct sched *s, struct sched_user *u, int64_t now_us)
{
	const struct run_share *x = share_of(s, u->tenant->name, owner_user(u->owner));
	limit_party(&u->p, x, s->most.user_running, s->most.user_waiting);
	share_weigh(&u->p.share, &u->tenant->clock, weight_of(x), now_us);
}

static void limit_tenant(struct sched *s, struct sched_tenant *t, int64_t now_us)
{
	const struct run_share *x = *t->name ? share_of(s, t->name, NULL) : NULL;
	limit_party(&t->p, x, 0, 0);
	share_weigh(&t->p.share, &s->clock, weight_of(x), now_us);
}

void sched_set_limits(struct sched *s, const struct sched_limits *l, int64_t now_us)
{
	free_shares(s);
	s->most = *l;
	s->most.shares = NULL;
	if (l->nshares) {
		struct run_share *own = xcalloc(l->nshares, sizeof(*own));
		memcpy(own, l->shares, l->nshares * sizeof(*own));
		s->most.shares = own;
	}
	list_for_each (t, &s->tenants, struct sched_tenant, link)
		limit_tenant(s, t, now_us);
	list_for_each (u, &s->everybody, struct sched_user, all)
		limit_user(s, u, now_us);
}

struct sched_tenant *sched_tenant_find(const struct sched *s, const char *name)
{
	list_for_each (t, &s->tenants, struct sched_tenant, link)
		if (strcmp(t->name, name) == 0)
			return t;
	return NULL;
}

static struct sched_tenant *tenant_get(struct sched *s, const char *name, int64_t now_us)
{
	struct sched_tenant *t = sched_tenant_find(s, name);
	if (t)
		return t;
	t = xnew(struct sched_tenant);
	(void)str_copy(t->name, sizeof(t->name), name); /* a checked name */
	t->p.share.weight = 1;
	list_init(&t->turn);
	list_init(&t->turns);
	list_append(&s->tenants, &t->link);
	share_join(&t->p.share, &s->clock, now_us);
	limit_tenant(s, t, now_us);
	return t;
}

struct sched_user *sched_user_find(const struct sched *s, const char *owner)
{
	const struct list *bucket = &s->users[hash_text(owner) % SCHED_BUCKETS];
	list_for_each (u, bucket, struct sched_user, link)
		if (strcmp(u->owner, owner) == 0)
			return u;
	return NULL;
}

static struct sched_user *user_get(struct sched *s, const char *owner, int64_t now_us)
{
	struct sched_user *u = sched_user_find(s, owner);
	char tenant[NAME_MAX_LEN];
	if (u)
		return u;
	owner_tenant(owner, tenant);
	u = xnew(struct sched_user);
	u->owner = xstrdup(owner);
	u->tenant = tenant_get(s, tenant, now_us);
	u->p.share.weight = 1;
	list_init(&u->turn);
	list_init(&u->ready);
	list_init(&u->waiting);
	list_append(&s->users[hash_text(owner) % SCHED_BUCKETS], &u->link);
	list_append(&s->everybody, &u->all);
	s->nusers++;
	share_join(&u->p.share, &u->tenant->clock, now_us);
	limit_user(s, u, now_us);
	return u;
}

static void user_put(struct sched *s, struct sched_user *u, int64_t now_us)
{
	struct sched_tenant *t = u->tenant;
	t->p.jobs--;
	if (--u->p.jobs)
		return;
	share_quit(&u->p.share, &t->clock, now_us);
	list_remove(&u->link);
	list_remove(&u->all);
	list_remove(&u->turn);
	s->nusers--;
	free(u->owner);
	free(u);
	if (t->p.jobs) {
		if (list_empty(&t->turns))
			list_remove(&t->turn);
		return;
	}
	share_quit(&t->p.share, &s->clock, now_us);
	list_remove(&t->link);
	list_remove(&t->turn);
	free(t);
}

/* ---- sessions ---- */

static struct sched_job *head(const struct sched_session *x)
{
	return list_first(&x->jobs, struct sched_job, link);
}

/* By their first jobs; both have one. */
static bool before(const struct sched_session *x, const struct sched_session *y)
{
	const struct sched_job *a = head(x), *b = head(y);
	assert(a && b);
	return a->priority != b->priority ? a->priority > b->priority : a->arrival < b->arrival;
}

static bool ready(const struct sched_session *x)
{
	return !x->busy && !x->held && !x->paused && head(x);
}

/* Puts the session where its first job belongs, or nowhere. */
static void session_place(struct sched *s, struct sched_session *x, struct sched_user *u)
{
	list_remove(&x->ready);
	if (ready(x)) {
		/* From the back: what comes belongs there nearly always. */
		struct list *at = u->ready.prev;
		while (at != &u->ready && before(x, list_entry(at, struct sched_session, ready)))
			at = at->prev;
		list_prepend(at, &x->ready); /* behind `at` */
	}
	struct sched_tenant *t = u->tenant;
	if (list_empty(&u->ready))
		list_remove(&u->turn);
	else if (list_empty(&u->turn))
		list_append(&t->turns, &u->turn);
	if (list_empty(&t->turns))
		list_remove(&t->turn);
	else if (list_empty(&t->turn))
		list_append(&s->turns, &t->turn);
}

/* ---- counts ---- */

static void count(struct sched *s, struct sched_user *u, size_t offset, int by)
{
	size_t *all[] = {
	        (size_t *)((char *)&u->p + offset), (size_t *)((char *)&u->tenant->p + offset)};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		*all[i] += (size_t)by;
	if (offset == offsetof(struct party, running))
		s->running += (size_t)by;
	else if (offset == offsetof(struct party, waiting))
		s->waiting += (size_t)by;
	else
		s->expected += (size_t)by;
}
#define COUNT(s, u, what, by) count(s, u, offsetof(struct party, what), by)

/* ---- coming ---- */

static void take_ask(
        struct sched *s, struct sched_job *j, const struct sched_ask *q, int64_t now_us)
{
	struct sched_user *u = user_get(s, q->owner, now_us);
	j->user = u;
	j->priority = q->priority;
	j->need = q->need;
	j->arrival = ++s->arrivals;
	list_init(&j->link);
	list_init(&j->mine);
	u->p.jobs++;
	u->tenant->p.jobs++;
}

void sched_expect(struct sched *s, struct sched_job *j, const struct sched_ask *q, int64_t now_us)
{
	take_ask(s, j, q, now_us);
	j->expected = true;
	COUNT(s, j->user, expected, 1);
}

static void wait_for_slot(struct sched *s, struct sched_job *j)
{
	struct sched_user *u = j->user;
	j->waiting = true;
	COUNT(s, u, waiting, 1);
	struct list *at = u->waiting.prev; /* by arrival */
	while (at != &u->waiting && list_entry(at, struct sched_job, mine)->arrival > j->arrival)
		at = at->prev;
	list_prepend(at, &j->mine);
	session_place(s, j->session, u);
}

void sched_add(struct sched *s, struct sched_job *j, struct sched_session *x,
        const struct sched_ask *q, int64_t now_us)
{
	if (j->expected)
		COUNT(s, j->user, expected, -1);
	else
		take_ask(s, j, q, now_us);
	j->expected = false;
	j->session = x;
	x->user = j->user;
	/* Jobs of one session keep their order whatever their priority: they build on each other.
	 */
	list_append(&x->jobs, &j->link);
	wait_for_slot(s, j);
}

/* ---- a slot, taken and given back ---- */

static double largest_share(const struct sched *s, const struct sched_need *n)
{
	double most = 1, slots = (double)s->most.running;
	if (s->most.most.memory_bytes) {
		double x = slots * (double)n->memory_bytes / (double)s->most.most.memory_bytes;
		most = x > most ? x : most;
	}
	if (s->most.most.cpu_milli) {
		double x = slots * (double)n->cpu_milli / (double)s->most.most.cpu_milli;
		most = x > most ? x : most;
	}
	return most;
}

static double smooth_gap(double gap_ms, int64_t start_us, int64_t now_us)
{
	double ms = start_us ? (double)(now_us - start_us) / 1000 : 0;
	return gap_ms > 0 ? gap_ms + (ms - gap_ms) / 8 : ms;
}

static void take_slot(struct sched *s, struct sched_job *j, int64_t now_us)
{
	struct sched_user *u = j->user;
	struct party *both[] = {&u->p, &u->tenant->p};
	j->running = true;
	j->started_us = now_us;
	j->slots = largest_share(s, &j->need);
	j->session->busy = true;
	COUNT(s, u, running, 1);
	s->promised.memory_bytes += j->need.memory_bytes;
	s->promised.cpu_milli += j->need.cpu_milli;
	j->beside = s->reserved ? s->reservations : 0;
	if (j->beside) {
		s->beside.memory_bytes += j->need.memory_bytes;
		s->beside.cpu_milli += j->need.cpu_milli;
		s->nbeside++;
	}
	s->serial++;
	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		both[i]->share.turn = s->serial;
		both[i]->gap_ms = smooth_gap(both[i]->gap_ms, both[i]->start_us, now_us);
		both[i]->start_us = now_us;
	}
	s->gap_ms = smooth_gap(s->gap_ms, s->start_us, now_us);
	s->start_us = now_us;
	share_take(&u->p.share, &u->tenant->clock, j->slots, now_us);
	share_take(&u->tenant->p.share, &s->clock, j->slots, now_us);
}

static void give_slot(struct sched *s, struct sched_job *j, int64_t now_us)
{
	struct sched_user *u = j->user;
	int64_t ran_us = now_us - j->started_us;
	j->running = false;
	j->session->busy = false;
	COUNT(s, u, running, -1);
	s->promised.memory_bytes -= j->need.memory_bytes;
	s->promised.cpu_milli -= j->need.cpu_milli;
	if (s->reserved && j->beside == s->reservations) {
		s->beside.memory_bytes -= j->need.memory_bytes;
		s->beside.cpu_milli -= j->need.cpu_milli;
		s->nbeside--;
	}
	share_give(&u->p.share, &u->tenant->clock, j->slots, ran_us, now_us);
	share_give(&u->tenant->p.share, &s->clock, j->slots, ran_us, now_us);
}

/* ---- choosing ---- */

static bool at_cap(const struct party *p)
{
	return p->most_running && p->running >= p->most_running;
}

static void reserve(struct sched *s, struct sched_job *j)
{
	s->reserved = j;
	s->reservations++;
	s->beside = (struct sched_need){0};
	s->nbeside = 0;
}

/* `used` and this one and `kept`, of `most`.  What is more than there ever is takes all. */
static bool fits_in(uint64_t used, uint64_t need, uint64_t kept, uint64_t most)
{
	if (!most)
		return true;
	need = sched_smaller(need, most);
	return used <= most && need <= most - used && kept <= most - used - need;
}

static bool fits(const struct sched *s, const struct sched_job *j)
{
	const struct sched_need *most = &s->most.most, *n = &j->need, *p = &s->promised;
	const struct sched_need *b = &s->beside;
	if (!fits_in(p->memory_bytes, n->memory_bytes, 0, most->memory_bytes) ||
	        !fits_in(p->cpu_milli, n->cpu_milli, 0, most->cpu_milli))
		return false;
	if (!s->reserved || j == s->reserved)
		return true;
	const struct sched_need kept = {
	        sched_smaller(s->reserved->need.memory_bytes, most->memory_bytes),
	        sched_smaller(s->reserved->need.cpu_milli, most->cpu_milli),
	};
	return fits_in(b->memory_bytes, n->memory_bytes, kept.memory_bytes, most->memory_bytes) &&
	       fits_in(b->cpu_milli, n->cpu_milli, kept.cpu_milli, most->cpu_milli) &&
	       s->nbeside + 1 < s->most.running;
}

/* Could it start now if it fitted?  Else it is not worth that others wait. */
static bool startable(const struct sched_job *j)
{
	return ready(j->session) && head(j->session) == j && !at_cap(&j->user->p) &&
	       !at_cap(&j->user->tenant->p);
}

static struct sched_job *fitting(struct sched *s, const struct sched_user *u)
{
	int left = LOOK_AT;
	list_for_each (x, &u->ready, struct sched_session, ready) {
		struct sched_job *j = head(x);
		if (fits(s, j))
			return j;
		if (!s->reserved)
			reserve(s, j);
		if (--left == 0)
			break;
	}
	return NULL;
}

static bool may_have(const struct sched *s, const struct party *p)
{
	return p->round != s->rounds && !at_cap(p);
}

static struct sched_user *next_user(const struct sched *s, struct sched_tenant *t, int64_t now_us)
{
	struct sched_user *best = NULL;
	list_for_each (u, &t->turns, struct sched_user, turn)
		if (may_have(s, &u->p) &&
		        (!best || share_before(&u->p.share, &best->p.share, &t->clock, now_us)))
			best = u;
	return best;
}

static struct sched_tenant *next_tenant(const struct sched *s, int64_t now_us)
{
	struct sched_tenant *best = NULL;
	list_for_each (t, &s->turns, struct sched_tenant, turn)
		if (may_have(s, &t->p) &&
		        (!best || share_before(&t->p.share, &best->p.share, &s->clock, now_us)))
			best = t;
	return best;
}

static struct sched_job *choose(struct sched *s, int64_t now_us)
{
	s->rounds++;
	if (s->reserved && !startable(s->reserved))
		s->reserved = NULL;
	if (s->reserved && fits(s, s->reserved))
		return s->reserved;
	for (struct sched_tenant *t; (t = next_tenant(s, now_us)) != NULL;) {
		struct sched_user *u = next_user(s, t, now_us);
		struct sched_job *j = u ? fitting(s, u) : NULL;
		if (j)
			return j;
		(u ? &u->p : &t->p)->round = s->rounds;
	}
	return NULL;
}

struct sched_job *sched_next(struct sched *s, int64_t now_us)
{
	struct sched_job *j = s->running < s->most.running ? choose(s, now_us) : NULL;
	if (!j)
		return NULL;
	if (j == s->reserved)
		s->reserved = NULL;
	list_remove(&j->link);
	list_remove(&j->mine);
	j->waiting = false;
	COUNT(s, j->user, waiting, -1);
	take_slot(s, j, now_us);
	session_place(s, j->session, j->user);
	return j;
}

void sched_resume(struct sched *s, struct sched_job *j, struct sched_session *x,
        const struct sched_ask *q, int64_t now_us)
{
	assert(!x->busy && !x->paused);
	take_ask(s, j, q, now_us);
	j->session = x;
	x->user = j->user;
	take_slot(s, j, now_us);
	session_place(s, x, j->user);
}

/* ---- between two attempts ---- */

void sched_pause(struct sched *s, struct sched_job *j, int64_t now_us)
{
	assert(j->running);
	give_slot(s, j, now_us);
	j->paused = true;
	j->session->paused = j;
	session_place(s, j->session, j->user);
}

void sched_add_paused(struct sched *s, struct sched_job *j, struct sched_session *x,
        const struct sched_ask *q, int64_t now_us)
{
	assert(!x->busy && !x->paused);
	take_ask(s, j, q, now_us);
	j->session = x;
	x->user = j->user;
	j->paused = true;
	x->paused = j;
	session_place(s, x, j->user);
}

void sched_wake(struct sched *s, struct sched_job *j, int64_t now_us)
{
	(void)now_us;
	assert(j->paused && j->session->paused == j);
	j->paused = false;
	j->session->paused = NULL;
	list_prepend(&j->session->jobs, &j->link);
	wait_for_slot(s, j);
}

/* ---- leaving ---- */

void sched_leave(struct sched *s, struct sched_job *j, int64_t now_us)
{
	struct sched_user *u = j->user;
	if (!j->expected && !j->waiting && !j->running && !j->paused)
		return;
	struct sched_session *x = j->session; /* NULL: of one that was expected */
	if (j->expected)
		COUNT(s, u, expected, -1);
	if (j->waiting) {
		list_remove(&j->link);
		list_remove(&j->mine);
		COUNT(s, u, waiting, -1);
	}
	if (j->running)
		give_slot(s, j, now_us);
	if (j->paused)
		x->paused = NULL;
	if (s->reserved == j)
		s->reserved = NULL;
	j->expected = j->waiting = j->running = j->paused = false;
	j->user = NULL;
	if (x)
		session_place(s, x, u);
	if (x && !x->busy && !x->paused && !head(x))
		x->user = NULL;
	user_put(s, u, now_us);
}

bool sched_hold(struct sched *s, struct sched_session *x)
{
	if (x->busy || x->held)
		return false;
	x->held = true;
	if (x->user)
		session_place(s, x, x->user);
	return true;
}

void sched_unhold(struct sched *s, struct sched_session *x)
{
	x->held = false;
	if (x->user)
		session_place(s, x, x->user);
}
