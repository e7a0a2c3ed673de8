/*
 * stats.h - counters of the supervisor, read by /metrics and /v1/stats.
 *
 * Plain numbers, written by the loop thread alone; gauges are kept by whoever
 * owns the thing counted.
 */
#ifndef SUPERVISOR_STATS_H
#define SUPERVISOR_STATS_H

#include <stdint.h>

/* Ends of a run: the statuses of a result. */
#define RUN_STATUSES(X)                                                                            \
	X(SUCCEEDED, "succeeded")                                                                  \
	X(FAILED, "failed")                                                                        \
	X(CANCELLED, "cancelled")                                                                  \
	X(TIMEOUT, "timeout")                                                                      \
	X(OOM, "oom")                                                                              \
	X(QUOTA, "quota")                                                                          \
	X(BLOCKED, "blocked")                                                                      \
	X(INTERRUPTED, "interrupted")

enum run_status {
#define RUN_STATUS_ENUM(sym, name) RUN_##sym,
	RUN_STATUSES(RUN_STATUS_ENUM)
#undef RUN_STATUS_ENUM
	        RUN_STATUS_COUNT
};

const char *run_status_name(enum run_status s);
int run_status_by_name(const char *name); /* enum run_status, or -1 */

/* Upper bounds of the histogram's buckets; the last bucket is +Inf. */
#define STATS_BUCKETS_MS                                                                           \
	{                                                                                          \
		10, 50, 100, 500, 1000, 5000, 15000, 60000, 300000, 1800000                        \
	}
enum { STATS_BUCKETS = 10 };

struct stats_histogram {
	uint64_t bucket[STATS_BUCKETS + 1]; /* not cumulative */
	uint64_t count, sum_ms;
};

struct stats {
	uint64_t runs_running, runs_queued; /* gauges */
	uint64_t runs_unsaved; /* gauge: ended, and the disk does not take the result */
	uint64_t jails;        /* gauge: jails made and not yet gone */
	uint64_t runs_done[RUN_STATUS_COUNT];
	uint64_t events, event_bytes;
	uint64_t egress_denied, egress_allowed, egress_bytes;
	/* As egress metered them; input: read anew. */
	uint64_t metered_requests, metered_input, metered_output, metered_cached;
	uint64_t metered_cost_micro;
	uint64_t output_bytes; /* read from agents */
	uint64_t harness_reloads, harness_errors;
	uint64_t store_commits, store_errors;
	struct stats_histogram duration, queued, start; /* of runs, in ms */
};

void stats_observe(struct stats_histogram *h, int64_t ms);

#endif
