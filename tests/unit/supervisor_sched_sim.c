/*
 * The scheduler in simulated time: thousands of random loads against what must
 * always hold, shares of those who always want more, and what a heavy user
 * costs light ones.  The same seeds each time.
 */
#include "supervisor/sched.h"

#include "policy/policy.h"
#include "tests/t.h"

enum { JOBS = 6000, SESSIONS = 1200, USERS = 16, SLOTS = 32 };

struct item {
	struct sched_job job;
	int user, session, ms;
	int64_t comes_us, starts_us, ends_us; /* 0: not yet */
};

static struct item items[JOBS];
static struct sched_session sessions[SESSIONS];
static char owners[USERS][32];

struct world {
	struct sched *s;
	struct sched_limits most;
	int64_t now_us, span_us; /* whose slot time counts */
	int n, running[SLOTS], nrunning, ended;
	int last[SESSIONS]; /* of each session, what ran last */
	bool busy[SESSIONS];
	double slot_ms[USERS]; /* had within the span */
	int of_user[USERS];    /* running now */
	struct sched_need promised;
	int bad;
	unsigned seed;
};

static unsigned roll(struct world *w, unsigned n)
{
	w->seed = w->seed * 1103515245u + 12345u;
	return (w->seed >> 8) % n;
}

static void begin(struct world *w, const struct sched_limits *l, unsigned seed)
{
	memset(items, 0, sizeof(items));
	for (int i = 0; i < SESSIONS; i++)
		sched_session_init(&sessions[i]);
	*w = (struct world){.most = *l, .now_us = 1000000, .seed = seed, .span_us = INT64_MAX};
	memset(w->last, -1, sizeof(w->last));
	for (int i = 0; i < USERS; i++)
		snprintf(owners[i], sizeof(owners[i]), "u%d", i);
	w->s = sched_new(l->running, l->waiting);
	sched_set_limits(w->s, l, w->now_us);
}

static void add(struct world *w, int user, int session, int ms, struct sched_need need)
{
	struct item *x = &items[w->n++];
	x->user = user;
	x->session = session;
	x->ms = ms;
	x->comes_us = w->now_us;
	const struct sched_ask ask = {owners[user], 0, need};
	sched_add(w->s, &x->job, &sessions[session], &ask, w->now_us);
}

/* Caps, sessions, order. */
static void check_start(struct world *w, int i)
{
	const struct item *x = &items[i];
	w->bad += w->busy[x->session] || i < w->last[x->session];
	w->bad += w->nrunning > (int)w->most.running;
	w->bad += w->most.user_running && w->of_user[x->user] > (int)w->most.user_running;
	w->bad += w->most.most.memory_bytes && w->promised.memory_bytes > w->most.most.memory_bytes;
	w->bad += w->most.most.cpu_milli && w->promised.cpu_milli > w->most.most.cpu_milli;
}

static void start_all(struct world *w)
{
	for (struct sched_job *j; (j = sched_next(w->s, w->now_us)) != NULL;) {
		int i = (int)((struct item *)(void *)j - items);
		struct item *x = &items[i];
		w->running[w->nrunning++] = i;
		w->of_user[x->user]++;
		w->promised.memory_bytes += j->need.memory_bytes;
		w->promised.cpu_milli += j->need.cpu_milli;
		check_start(w, i);
		w->busy[x->session] = true;
		w->last[x->session] = i;
		x->starts_us = w->now_us;
		x->ends_us = w->now_us + (int64_t)x->ms * 1000;
	}
}

/* Nobody waits for what is free.  (With memory a reservation may keep some.) */
static void check_idle(struct world *w)
{
	if (w->nrunning >= (int)w->most.running || w->most.most.memory_bytes ||
	        w->most.most.cpu_milli)
		return;
	for (int i = 0; i < w->n; i++) {
		const struct item *x = &items[i];
		bool capped =
		        w->most.user_running && w->of_user[x->user] >= (int)w->most.user_running;
		w->bad += x->job.waiting && !w->busy[x->session] && !capped;
	}
}

/* To the next end, or to `until`; the job that ended, or -1. */
static int step(struct world *w, int64_t until)
{
	int first = -1;
	for (int k = 0; k < w->nrunning; k++)
		if (first < 0 || items[w->running[k]].ends_us < items[w->running[first]].ends_us)
			first = k;
	if (first < 0 || items[w->running[first]].ends_us > until) {
		w->now_us = until;
		return -1;
	}
	int i = w->running[first];
	struct item *x = &items[i];
	w->now_us = x->ends_us;
	w->running[first] = w->running[--w->nrunning];
	w->of_user[x->user]--;
	w->busy[x->session] = false;
	w->promised.memory_bytes -= x->job.need.memory_bytes;
	w->promised.cpu_milli -= x->job.need.cpu_milli;
	w->ended++;
	int64_t to = x->ends_us < w->span_us ? x->ends_us : w->span_us;
	if (to > x->starts_us)
		w->slot_ms[x->user] += (double)(to - x->starts_us) / 1000;
	sched_leave(w->s, &x->job, w->now_us);
	return i;
}

/* ---- random loads ---- */

static bool random_one(unsigned seed)
{
	struct world w;
	const unsigned r = seed * 2654435761u;
	const struct sched_limits l = {.running = 1 + r % 12,
	        .waiting = JOBS,
	        .user_running = r / 16 % 3 ? 0 : 1 + r / 64 % 4,
	        .most = {r / 256 % 2 ? 1000 : 0, r / 512 % 3 ? 0 : 4000}};
	begin(&w, &l, seed);
	int total = 40 + (int)roll(&w, 160), nsessions = 1 + (int)roll(&w, 40);
	int64_t longest = 0;
	while (w.ended < total && w.bad == 0) {
		for (unsigned k = roll(&w, 8); k && w.n < total; k--) {
			int session = (int)roll(&w, (unsigned)nsessions);
			const struct sched_need need = {roll(&w, 10) ? roll(&w, 300) : 1000,
			        roll(&w, 10) ? roll(&w, 1500) : 4000};
			add(&w, session % 5, session, 1 + (int)roll(&w, 1000),
			        l.most.memory_bytes || l.most.cpu_milli ? need
			                                                : (struct sched_need){0});
		}
		start_all(&w);
		check_idle(&w);
		w.bad += w.nrunning == 0 && sched_waiting(w.s) > 0; /* it would never end */
		(void)step(&w, w.n < total ? w.now_us + 1000 * (int64_t)roll(&w, 300) : INT64_MAX);
	}
	for (int i = 0; i < w.n; i++)
		longest = items[i].starts_us - items[i].comes_us > longest
		                  ? items[i].starts_us - items[i].comes_us
		                  : longest;
	/* Everything before it, one after another, is the worst that can happen to a job. */
	w.bad += longest > (int64_t)total * 1000 * 1000;
	bool fine = w.bad == 0 && w.ended == total;
	if (!fine)
		printf("# load %u: %d of %d ended, %d bad\n", seed, w.ended, total, w.bad);
	sched_free(w.s);
	return fine;
}

static void random_loads(void)
{
	int fine = 0;
	for (unsigned seed = 1; seed <= 3000; seed++)
		fine += random_one(seed);
	ok(fine == 3000, "3,000 random loads: order, caps, nothing idle that could run, all end");
}

/* ---- shares ---- */

/* Everybody always has more to do than there is room, in `each` sessions; durations differ. */
static void saturate(struct world *w, int users, const int *ms, int each, int64_t for_us)
{
	w->span_us = w->now_us + for_us;
	for (int u = 0; u < users; u++)
		for (int k = 0; k < each; k++)
			add(w, u, u * each + k, ms[u] / 2 + 1 + (int)roll(w, (unsigned)ms[u]),
			        (struct sched_need){0});
	start_all(w);
	while (w->now_us < w->span_us) {
		int i = step(w, w->span_us);
		if (i >= 0 && w->n < JOBS) {
			int u = items[i].user;
			add(w, u, items[i].session, ms[u] / 2 + 1 + (int)roll(w, (unsigned)ms[u]),
			        (struct sched_need){0});
		}
		start_all(w);
	}
	for (int k = 0; k < w->nrunning; k++) {
		const struct item *x = &items[w->running[k]];
		w->slot_ms[x->user] += (double)(w->now_us - x->starts_us) / 1000;
	}
	must(w->n < JOBS, "the load fits");
}

static bool within(double got, double want, double by)
{
	return got > want * (1 - by) && got < want * (1 + by);
}

static void weights(void)
{
	struct world w;
	const struct run_share shares[] = {
	        {.user = "u1", .weight = 2}, {.user = "u2", .weight = 4}};
	const struct sched_limits l = {
	        .running = 8, .waiting = JOBS, .shares = shares, .nshares = 2};
	const int ms[] = {100, 400, 1000};
	begin(&w, &l, 7);
	saturate(&w, 3, ms, 12, INT64_C(120000000));
	double all = w.slot_ms[0] + w.slot_ms[1] + w.slot_ms[2];
	for (int u = 0; u < 3; u++)
		ok(within(w.slot_ms[u] / all, (1 << u) / 7.0, 0.1),
		        "weight %d of 7 is %.3f of the slot time, though its runs take %d ms",
		        1 << u, w.slot_ms[u] / all, ms[u]);
	ok(within(all, 8 * 120000, 0.01), "and all of it is used");
	sched_free(w.s);
}

static void tenants(void)
{
	struct world w;
	const struct run_share shares[] = {
	        {.tenant = "b", .weight = 3}, {.tenant = "a", .user = "u1", .weight = 2}};
	const struct sched_limits l = {
	        .running = 8, .waiting = JOBS, .shares = shares, .nshares = 2};
	const int ms[] = {200, 200, 200, 200, 200, 200};
	begin(&w, &l, 9);
	for (int u = 0; u < 6; u++) /* five of tenant a, one of b */
		snprintf(owners[u], sizeof(owners[u]), "%s\x1fu%d", u < 5 ? "a" : "b", u);
	saturate(&w, 6, ms, 12, INT64_C(100000000));
	double a = 0, b = w.slot_ms[5];
	for (int u = 0; u < 5; u++)
		a += w.slot_ms[u];
	ok(within(b / (a + b), 0.75, 0.05), "a tenant of weight 3 with one user: %.3f",
	        b / (a + b));
	ok(within(w.slot_ms[1] / a, 2 / 6.0, 0.1), "weight 2 of 6 within the other: %.3f",
	        w.slot_ms[1] / a);
	ok(within(w.slot_ms[0] / a, 1 / 6.0, 0.12), "weight 1 of 6: %.3f", w.slot_ms[0] / a);
	sched_free(w.s);
}

/* Who was alone for long owes nothing, and who comes late has saved up nothing. */
static void no_memory(void)
{
	struct world w;
	const struct sched_limits l = {.running = 8, .waiting = JOBS};
	const int ms[] = {200, 200};
	begin(&w, &l, 11);
	saturate(&w, 1, ms, 24, INT64_C(60000000));
	int64_t until = w.now_us + 4000000;
	memset(w.slot_ms, 0, sizeof(w.slot_ms));
	for (int i = 0; i < 400; i++)
		add(&w, 1, 100 + i, 200, (struct sched_need){0});
	w.span_us = until;
	start_all(&w);
	while (w.now_us < until) {
		int i = step(&w, until);
		if (i >= 0 && items[i].user == 0)
			add(&w, 0, items[i].session, 200, (struct sched_need){0});
		start_all(&w);
	}
	double part = w.slot_ms[1] / (w.slot_ms[0] + w.slot_ms[1]);
	ok(part > 0.4 && part < 0.68, "a second user gets a half at once, and not all: %.2f", part);
	sched_free(w.s);
}

/* ---- one heavy user and nine light ones ---- */

enum { HEAVY = 0, LIGHTS = 9, EACH = 20, PAUSE_MS = 200 };

static int compare(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
	return a < b ? -1 : a > b;
}

/* Each light one asks, waits for the end, thinks, and asks again.  ms: from asking to the end. */
static double light_p95(bool heavy, int heavy_sessions, unsigned seed)
{
	struct world w;
	const struct sched_limits l = {.running = 16, .waiting = JOBS};
	int64_t asks[LIGHTS + 1] = {0}, took[LIGHTS * EACH];
	int left[LIGHTS + 1], n = 0;
	begin(&w, &l, seed);
	for (int k = 0; heavy && k < 1000; k++)
		add(&w, HEAVY, 20 + k % heavy_sessions, 150 + (int)roll(&w, 300),
		        (struct sched_need){0});
	start_all(&w);
	for (int u = 1; u <= LIGHTS; u++) {
		asks[u] = w.now_us + 1000 * (int64_t)roll(&w, PAUSE_MS);
		left[u] = EACH;
	}
	while (n < LIGHTS * EACH) {
		int64_t next = INT64_MAX;
		for (int u = 1; u <= LIGHTS; u++)
			if (asks[u] && asks[u] < next)
				next = asks[u];
		int i = step(&w, next);
		for (int u = 1; i < 0 && u <= LIGHTS; u++)
			if (asks[u] == w.now_us) {
				add(&w, u, u, 150 + (int)roll(&w, 300), (struct sched_need){0});
				asks[u] = 0;
			}
		int u = i < 0 ? 0 : items[i].user;
		if (u) {
			took[n++] = w.now_us - items[i].comes_us;
			asks[u] = --left[u] ? w.now_us + 1000 * (int64_t)roll(&w, PAUSE_MS) + 1 : 0;
		}
		start_all(&w);
	}
	sched_free(w.s);
	qsort(took, (size_t)n, sizeof(*took), compare);
	int at = n * 95 / 100;
	return (double)took[at] / 1000;
}

static void heavy_and_light(void)
{
	static const int spread[] = {1, 20, 1000};
	for (size_t k = 0; k < 3; k++) {
		double worst = 0, sum = 0;
		for (unsigned seed = 1; seed <= 20; seed++) {
			double x = light_p95(true, spread[k], seed) / light_p95(false, 1, seed);
			worst = x > worst ? x : worst;
			sum += x / 20;
		}
		ok(sum < 1.3,
		        "1,000 runs of a heavy user in %d sessions: light p95 is %.2f of alone "
		        "(at worst %.2f)",
		        spread[k], sum, worst);
		ok(worst < 1.45, "and never far from it");
	}
}

/* ---- memory ---- */

/* Small ones without end, and a large one. */
static void large_one(void)
{
	struct world w;
	const struct sched_limits l = {.running = 16, .waiting = JOBS, .most = {1600, 0}};
	const struct sched_need small = {100, 0}, large = {1500, 0};
	begin(&w, &l, 3);
	for (int k = 0; k < 40; k++)
		add(&w, 1 + k % 4, k, 50 + (int)roll(&w, 100), small);
	start_all(&w);
	(void)step(&w, w.now_us + 1000000);
	int at = w.n;
	add(&w, 0, 900, 100, large);
	int64_t came = w.now_us;
	while (!items[at].starts_us && w.now_us < came + 60000000) {
		start_all(&w);
		int i = step(&w, INT64_MAX);
		if (w.n < JOBS - 1)
			add(&w, items[i].user, items[i].session, 50 + (int)roll(&w, 100), small);
	}
	int64_t ms = (items[at].starts_us - came) / 1000;
	ok(items[at].starts_us && ms < 400, "it starts %lld ms after it came", (long long)ms);
	ok(w.bad == 0, "within the limits");
	sched_free(w.s);
}

int main(void)
{
	random_loads();
	weights();
	tenants();
	no_memory();
	heavy_and_light();
	large_one();
	return done();
}
