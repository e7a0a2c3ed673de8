#include "supervisor/stats.h"

#include <string.h>

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

void stats_observe(struct stats_histogram *h, int64_t ms)
{
	static const int64_t bounds[STATS_BUCKETS] = STATS_BUCKETS_MS;
	if (ms < 0)
		ms = 0;
	size_t i = 0;
	while (i < STATS_BUCKETS && ms > bounds[i])
		i++;
	h->bucket[i]++;
	h->count++;
	h->sum_ms += (uint64_t)ms;
}
