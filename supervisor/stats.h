/*
 * stats.h - counters of the supervisor, read by /metrics and /v1/stats.
 *
 * Plain numbers, written by the loop thread alone; gauges are kept by whoever
 * owns the thing counted.
 */
#ifndef SUPERVISOR_STATS_H
#define SUPERVISOR_STATS_H

#include "base/id.h"

#include "base/id.h"

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

/* From half a millisecond, as a warm start takes, to half an hour; the last bucket is +Inf. */
enum { STATS_BUCKETS = 17 };
extern const int64_t stats_bounds_us[STATS_BUCKETS];

struct stats_histogram {
	uint64_t bucket[STATS_BUCKETS + 1]; /* not cumulative */
	uint64_t count, sum_us;
};

/* Runs of one harness that have ended. */
struct stats_harness {
	char name[NAME_MAX_LEN];
	uint64_t done[RUN_STATUS_COUNT];
	struct stats_histogram queued, start, duration[RUN_STATUS_COUNT];
};

/* Told apart by name: the first so many that had a run. */
enum { STATS_HARNESSES = 32 };
#define STATS_OTHER "other" /* and what all others are together */

struct stats {
	uint64_t runs_running, runs_queued; /* gauges */
	uint64_t draining;                  /* gauge: 1 while no new run is taken, by root's will */
	uint64_t runs_unsaved;           /* gauge: ended, and the disk does not take the result */
	uint64_t state_left;             /* gauge: bytes free on the disk of the state directory */
	uint64_t agents_waiting;         /* gauge: for another run of their session */
	uint64_t warm_hits, warm_misses; /* runs that want one: it was there, it was not */
	uint64_t jails;                  /* gauge: jails made and not yet gone */
	uint64_t jails_made, pool_hits;  /* ... of a kit that was ready */
	uint64_t retries, evictions;     /* of runs, of sessions */
	uint64_t runs_done[RUN_STATUS_COUNT];
	uint64_t runs_forgotten; /* by retention */
	uint64_t events, event_bytes;
	uint64_t egress_denied, egress_allowed, egress_bytes;
	/* As egress metered them; input: read anew. */
	uint64_t metered_requests, metered_input, metered_output, metered_cached;
	uint64_t metered_cost_micro;
	uint64_t webhooks_pending; /* gauge: runs of which a webhook is still to be told */
	uint64_t webhooks_delivered, webhooks_retried, webhooks_failed; /* events */
	uint64_t traces_pending; /* gauge: runs that a collector of traces is still to be told */
	uint64_t trace_spans_sent, trace_spans_dropped;
	uint64_t traces_retried, traces_dropped; /* requests; runs */
	uint64_t uploads_pending; /* gauge: artifacts that are still to be put into the bucket */
	uint64_t uploads_done, uploads_failed, uploads_retried, uploads_bytes; /* of artifacts */
	uint64_t objects_deleted;                                              /* likewise */
	uint64_t output_bytes; /* read from agents */
	uint64_t harness_reloads, harness_errors;
	uint64_t store_commits, store_errors;
	uint64_t ring_sqes, ring_cqes, ring_overflows;
	struct stats_histogram turn, commit, jail_make;
	struct stats_harness harness[STATS_HARNESSES + 1]; /* the first: all others */
	unsigned nharnesses;                               /* of those that have a name */
};

void stats_observe(struct stats_histogram *h, int64_t us);
void stats_add(struct stats_histogram *to, const struct stats_histogram *h);
/* Below which that part (0..1) of what was observed is, as far as the buckets tell. */
int64_t stats_quantile_us(const struct stats_histogram *h, double part);
/* A run has ended. */
struct stats_harness *stats_done(struct stats *s, const char *harness, enum run_status status);

#endif
