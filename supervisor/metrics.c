#include "supervisor/metrics.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/version.h"

#include <inttypes.h>
#include <stddef.h>

/* One row is a line of /metrics and a member of /v1/stats. */
struct row {
	const char *name, *json, *type, *help;
	size_t offset; /* in struct stats */
};

#define GAUGE(name, json, field, help)                                                             \
	{                                                                                          \
		name, json, "gauge", help, offsetof(struct stats, field)                           \
	}
#define COUNTER(name, json, field, help)                                                           \
	{                                                                                          \
		name, json, "counter", help, offsetof(struct stats, field)                         \
	}

/* A table is read by its columns. */
/* clang-format off */
static const struct row rows[] = {
	GAUGE("agentbox_runs_running", "runsRunning", runs_running,
		"Runs in progress."),
	GAUGE("agentbox_runs_queued", "runsQueued", runs_queued,
		"Runs waiting for a place."),
	GAUGE("agentbox_runs_unsaved", "runsUnsaved", runs_unsaved,
		"Runs that have ended and whose result the disk does not take."),
	GAUGE("agentbox_jails", "jails", jails,
		"Jails made and not yet gone."),
	COUNTER("agentbox_events_total", "events", events,
		"Events written to session logs."),
	COUNTER("agentbox_event_bytes_total", "eventBytes", event_bytes,
		"Bytes of those events."),
	COUNTER("agentbox_output_bytes_total", "outputBytes", output_bytes,
		"Bytes read from agents."),
	COUNTER("agentbox_egress_denied_total", "egressDenied", egress_denied,
		"Outbound attempts refused."),
	COUNTER("agentbox_egress_allowed_total", "egressAllowed", egress_allowed,
		"Outbound exchanges let through."),
	COUNTER("agentbox_egress_bytes_total", "egressBytes", egress_bytes,
		"Bytes of those, both ways."),
	COUNTER("agentbox_model_requests_total", "modelRequests", metered_requests,
		"Requests to injected upstreams."),
	COUNTER("agentbox_harness_reloads_total", "harnessReloads", harness_reloads,
		"Harness files taken into use."),
	COUNTER("agentbox_harness_errors_total", "harnessErrors", harness_errors,
		"Harness files that could not be."),
	COUNTER("agentbox_store_commits_total", "storeCommits", store_commits,
		"Group commits of the store."),
	COUNTER("agentbox_store_errors_total", "storeErrors", store_errors,
		"Commits that failed."),
};

static const struct {
	const char *name, *json, *help;
	size_t offset;
} histograms[] = {
	{ "agentbox_run_duration_seconds", "duration", "From start to end of a run.",
	  offsetof(struct stats, duration) },
	{ "agentbox_run_queue_seconds", "queued", "From acceptance to start of a run.",
	  offsetof(struct stats, queued) },
	{ "agentbox_run_start_seconds", "start", "From start to the agent's process.",
	  offsetof(struct stats, start) },
};
/* clang-format on */

/* By kind, as egress metered them. */
static const struct {
	const char *kind, *json;
	size_t offset;
} tokens[] = {
        {"input", "inputTokens", offsetof(struct stats, metered_input)},
        {"cached", "cachedTokens", offsetof(struct stats, metered_cached)},
        {"output", "outputTokens", offsetof(struct stats, metered_output)},
};

static uint64_t tokens_of(const struct stats *s, size_t i)
{
	return *(const uint64_t *)(const void *)((const char *)s + tokens[i].offset);
}

static void tokens_text(const struct stats *s, struct buf *to)
{
	buf_puts(to, "# HELP agentbox_tokens_total Tokens of injected upstreams: read anew, read "
	             "from a cache, written.\n"
	             "# TYPE agentbox_tokens_total counter\n");
	for (size_t i = 0; i < ARRAY_LEN(tokens); i++)
		buf_printf(to, "agentbox_tokens_total{kind=\"%s\"} %" PRIu64 "\n", tokens[i].kind,
		        tokens_of(s, i));
	buf_printf(to,
	        "# HELP agentbox_cost_usd_total What those cost, by the price table.\n"
	        "# TYPE agentbox_cost_usd_total counter\nagentbox_cost_usd_total %.6f\n",
	        (double)s->metered_cost_micro / 1e6);
}

static uint64_t value(const struct stats *s, const struct row *r)
{
	return *(const uint64_t *)(const void *)((const char *)s + r->offset);
}

static const struct stats_histogram *histogram(const struct stats *s, size_t i)
{
	return (const void *)((const char *)s + histograms[i].offset);
}

static void line(struct buf *to, const char *name, const char *type, const char *help, uint64_t v)
{
	buf_printf(to, "# HELP %s %s\n# TYPE %s %s\n%s %" PRIu64 "\n", name, help, name, type, name,
	        v);
}

static void histogram_text(struct buf *to, size_t i, const struct stats_histogram *h)
{
	static const int64_t bounds[STATS_BUCKETS] = STATS_BUCKETS_MS;
	const char *name = histograms[i].name;
	uint64_t sum = 0;
	buf_printf(to, "# HELP %s %s\n# TYPE %s histogram\n", name, histograms[i].help, name);
	for (size_t b = 0; b < STATS_BUCKETS; b++) {
		sum += h->bucket[b];
		buf_printf(to, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name, (double)bounds[b] / 1000,
		        sum);
	}
	buf_printf(to, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %.3f\n%s_count %" PRIu64 "\n",
	        name, h->count, name, (double)h->sum_ms / 1000, name, h->count);
}

void metrics_text(const struct metrics *m, struct buf *to)
{
	buf_puts(to, "# HELP agentbox_build_info The version that runs.\n"
	             "# TYPE agentbox_build_info gauge\n"
	             "agentbox_build_info{version=\"" AGENTBOX_VERSION "\"} 1\n");
	line(to, "agentbox_uptime_seconds", "gauge", "Since the supervisor started.",
	        (uint64_t)m->uptime_ms / 1000);
	line(to, "agentbox_sessions", "gauge", "Sessions kept.", m->sessions);
	line(to, "agentbox_harnesses", "gauge", "Task types in use.", m->harnesses);
	line(to, "agentbox_http_connections", "gauge", "Control connections.", m->connections);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		line(to, rows[i].name, rows[i].type, rows[i].help, value(m->stats, &rows[i]));
	buf_puts(to, "# HELP agentbox_runs_total Runs ended, by status.\n"
	             "# TYPE agentbox_runs_total counter\n");
	for (int s = 0; s < RUN_STATUS_COUNT; s++)
		buf_printf(to, "agentbox_runs_total{status=\"%s\"} %" PRIu64 "\n",
		        run_status_name((enum run_status)s), m->stats->runs_done[s]);
	tokens_text(m->stats, to);
	for (size_t i = 0; i < ARRAY_LEN(histograms); i++)
		histogram_text(to, i, histogram(m->stats, i));
}

void metrics_json(const struct metrics *m, struct buf *to)
{
	struct jw w = JW_INIT(to);
	jw_open(&w, NULL, '{');
	jw_str(&w, "version", AGENTBOX_VERSION);
	jw_int(&w, "uptimeMs", m->uptime_ms);
	jw_int(&w, "sessions", (int64_t)m->sessions);
	jw_int(&w, "harnesses", (int64_t)m->harnesses);
	jw_int(&w, "connections", (int64_t)m->connections);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		jw_int(&w, rows[i].json, (int64_t)value(m->stats, &rows[i]));
	for (size_t i = 0; i < ARRAY_LEN(tokens); i++)
		jw_int(&w, tokens[i].json, (int64_t)tokens_of(m->stats, i));
	jw_num(&w, "costUsd", (double)m->stats->metered_cost_micro / 1e6);
	jw_open(&w, "runs", '{');
	for (int s = 0; s < RUN_STATUS_COUNT; s++)
		jw_int(&w, run_status_name((enum run_status)s), (int64_t)m->stats->runs_done[s]);
	jw_close(&w, '}');
	for (size_t i = 0; i < ARRAY_LEN(histograms); i++) {
		const struct stats_histogram *h = histogram(m->stats, i);
		jw_open(&w, histograms[i].json, '{');
		jw_int(&w, "count", (int64_t)h->count);
		jw_int(&w, "sumMs", (int64_t)h->sum_ms);
		jw_close(&w, '}');
	}
	jw_close(&w, '}');
}
