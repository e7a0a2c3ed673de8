/*
 * metrics.h - the counters of the supervisor as Prometheus text (version 0.0.4)
 * and as JSON.  Pure: numbers in, bytes out.
 */
#ifndef SUPERVISOR_METRICS_H
#define SUPERVISOR_METRICS_H

#include "base/buf.h"
#include "supervisor/machine.h"
#include "supervisor/stats.h"

#include <stdint.h>

struct metrics {
	const struct stats *stats;
	struct machine_look machine;
	uint64_t sessions, harnesses, connections;
	int64_t uptime_ms;
};

void metrics_text(const struct metrics *m, struct buf *to);
void metrics_json(const struct metrics *m, struct buf *to);

#endif
