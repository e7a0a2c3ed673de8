#include "supervisor/stats.h"

#include "base/mem.h"

#include <string.h>

const int64_t stats_bounds_us[STATS_BUCKETS] = {500, 1000, 2500, 5000, 10000, 25000, 50000, 100000,
        250000, 500000, 1000000, 2500000, 5000000, 15000000, 60000000, 300000000, 1800000000};

static const char *const names[] = {
#define RUN_STATUS_NAME(sym, name) [RUN_##sym] = (name),
        RUN_STATUSES(RUN_STATUS_NAME)
#undef RUN_STATUS_NAME
};

const char *run_status_name(enum run_status s)
{
	return s < RUN_STATUS_COUNT ? names[s] : "unknown";
}

int run_status_by_name(const char *name)
{
	for (int i = 0; i < RUN_STATUS_COUNT; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

void stats_observe(struct stats_histogram *h, int64_t us)
{
	if (us < 0)
		us = 0;
	size_t i = 0;
	while (i < STATS_BUCKETS && us > stats_bounds_us[i])
		i++;
	h->bucket[i]++;
	h->count++;
	h->sum_us += (uint64_t)us;
}

void stats_add(struct stats_histogram *to, const struct stats_histogram *h)
{
	for (size_t i = 0; i <= STATS_BUCKETS; i++)
		to->bucket[i] += h->bucket[i];
	to->count += h->count;
	to->sum_us += h->sum_us;
}

/* Within a bucket they count as spread evenly; beyond the last bound as at it. */
int64_t stats_quantile_us(const struct stats_histogram *h, double part)
{
	double rank = part * (double)h->count, before = 0;
	for (size_t i = 0; i < STATS_BUCKETS; i++) {
		double n = (double)h->bucket[i], low = i ? (double)stats_bounds_us[i - 1] : 0;
		if (n > 0 && before + n >= rank)
			return (int64_t)(low +
			                 ((double)stats_bounds_us[i] - low) * (rank - before) / n);
		before += n;
	}
	return h->count ? stats_bounds_us[STATS_BUCKETS - 1] : 0;
}

static struct stats_harness *of_harness(struct stats *s, const char *name)
{
	if (strcmp(name, STATS_OTHER) == 0)
		return &s->harness[0];
	for (unsigned i = 1; i <= s->nharnesses; i++)
		if (strcmp(s->harness[i].name, name) == 0)
			return &s->harness[i];
	if (s->nharnesses == STATS_HARNESSES)
		return &s->harness[0];
	struct stats_harness *h = &s->harness[++s->nharnesses];
	(void)str_copy(h->name, sizeof(h->name), name); /* a checked name */
	return h;
}

struct stats_harness *stats_done(struct stats *s, const char *harness, enum run_status status)
{
	struct stats_harness *h = of_harness(s, harness);
	s->runs_done[status]++;
	h->done[status]++;
	return h;
}
