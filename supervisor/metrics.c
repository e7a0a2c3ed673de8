#include "supervisor/metrics.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/version.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

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
	GAUGE("agentbox_draining", "draining", draining,
		"1 while no new run is taken: abctl drain."),
	GAUGE("agentbox_state_free_bytes", "stateFreeBytes", state_left,
		"Bytes free on the disk of the state directory."),
	GAUGE("agentbox_runs_unsaved", "runsUnsaved", runs_unsaved,
		"Runs that have ended and whose result the disk does not take."),
	GAUGE("agentbox_jails", "jails", jails,
		"Jails made and not yet gone."),
	COUNTER("agentbox_jails_made_total", "jailsMade", jails_made,
		"Jails made."),
	COUNTER("agentbox_pool_hits_total", "poolHits", pool_hits,
		"Those of a kit that was ready in the pool."),
	COUNTER("agentbox_run_retries_total", "runRetries", retries,
		"Attempts that failed and are followed by another."),
	COUNTER("agentbox_session_evictions_total", "sessionEvictions", evictions,
		"Idle sessions that were evicted."),
	GAUGE("agentbox_agents_waiting", "agentsWaiting", agents_waiting,
		"Agents that wait for another run of their session."),
	COUNTER("agentbox_warm_hits_total", "warmHits", warm_hits,
		"Runs that were given an agent that waited."),
	COUNTER("agentbox_warm_misses_total", "warmMisses", warm_misses,
		"Runs of harnesses with warm that began with a new one."),
	COUNTER("agentbox_retention_runs_total", "runsForgotten", runs_forgotten,
		"Runs that were not kept any longer."),
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
	GAUGE("agentbox_webhook_pending", "webhooksPending", webhooks_pending,
		"Runs of which a webhook is still to be told."),
	COUNTER("agentbox_webhook_delivered_total", "webhooksDelivered", webhooks_delivered,
		"Events that the receiver of a webhook has taken."),
	COUNTER("agentbox_webhook_retried_total", "webhooksRetried", webhooks_retried,
		"Attempts that failed and are followed by another."),
	COUNTER("agentbox_webhook_failed_total", "webhooksFailed", webhooks_failed,
		"Events that were given up."),
	GAUGE("agentbox_trace_pending", "tracesPending", traces_pending,
		"Runs whose traces are still to be sent."),
	COUNTER("agentbox_trace_spans_sent_total", "traceSpansSent", trace_spans_sent,
		"Spans that the collector has taken."),
	COUNTER("agentbox_trace_spans_dropped_total", "traceSpansDropped", trace_spans_dropped,
		"Spans that it has refused, and those beyond 512 of a run."),
	COUNTER("agentbox_trace_runs_dropped_total", "tracesDropped", traces_dropped,
		"Runs whose traces were given up."),
	COUNTER("agentbox_trace_retries_total", "tracesRetried", traces_retried,
		"Requests with traces that failed and are followed by another."),
	GAUGE("agentbox_upload_pending", "uploadsPending", uploads_pending,
		"Artifacts that are still to be put into the bucket."),
	COUNTER("agentbox_upload_done_total", "uploadsDone", uploads_done,
		"Artifacts that were put into the bucket."),
	COUNTER("agentbox_upload_failed_total", "uploadsFailed", uploads_failed,
		"Artifacts whose upload was given up."),
	COUNTER("agentbox_upload_retried_total", "uploadsRetried", uploads_retried,
		"Requests to the bucket that failed and are followed by another."),
	COUNTER("agentbox_upload_bytes_total", "uploadBytes", uploads_bytes,
		"Bytes of those that were put there."),
	COUNTER("agentbox_upload_deleted_total", "uploadsDeleted", objects_deleted,
		"Artifacts that were deleted there."),
	COUNTER("agentbox_harness_reloads_total", "harnessReloads", harness_reloads,
		"Harness files taken into use."),
	COUNTER("agentbox_harness_errors_total", "harnessErrors", harness_errors,
		"Harness files that could not be."),
	COUNTER("agentbox_ring_submissions_total", "ringSubmissions", ring_sqes,
		"Requests made of the kernel through io_uring."),
	COUNTER("agentbox_ring_completions_total", "ringCompletions", ring_cqes,
		"Its answers."),
	COUNTER("agentbox_ring_overflows_total", "ringOverflows", ring_overflows,
		"Answers that found no room and had to wait in the kernel."),
	COUNTER("agentbox_store_commits_total", "storeCommits", store_commits,
		"Group commits of the store."),
	COUNTER("agentbox_store_errors_total", "storeErrors", store_errors,
		"Commits that failed."),
};

static const struct {
	const char *name, *json, *help;
	size_t offset; /* in struct stats */
} histograms[] = {
	{ "agentbox_jail_make_seconds", "jailMake", "How long the making of a jail took agentboxd.",
	  offsetof(struct stats, jail_make) },
	{ "agentbox_store_commit_seconds", "storeCommit", "Group commits with their syncs.",
	  offsetof(struct stats, commit) },
	{ "agentbox_loop_turn_seconds", "loopTurn",
	  "What a turn of the supervisor's loop did: others wait as long.",
	  offsetof(struct stats, turn) },
};

/* Of runs, by harness. */
static const struct {
	const char *name, *json, *help;
	size_t offset; /* in struct stats_harness */
	bool by_status;
} of_runs[] = {
	{ "agentbox_run_duration_seconds", "duration", "From start to end of a run.",
	  offsetof(struct stats_harness, duration), true },
	{ "agentbox_run_queue_seconds", "queued", "From acceptance to start of a run.",
	  offsetof(struct stats_harness, queued), false },
	{ "agentbox_run_start_seconds", "start", "From start to the agent's process.",
	  offsetof(struct stats_harness, start), false },
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

static void head(struct buf *to, const char *name, const char *type, const char *help)
{
	buf_printf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void line(struct buf *to, const char *name, const char *type, const char *help, uint64_t v)
{
	head(to, name, type, help);
	buf_printf(to, "%s %" PRIu64 "\n", name, v);
}

/* ---- histograms ---- */

/* `labels` "" or "a=\"b\"". */
static void histogram_lines(
        struct buf *to, const char *name, const char *labels, const struct stats_histogram *h)
{
	uint64_t sum = 0;
	const char *comma = *labels ? "," : "", *open = *labels ? "{" : "",
	           *close = *labels ? "}" : "";
	for (size_t b = 0; b < STATS_BUCKETS; b++) {
		sum += h->bucket[b];
		buf_printf(to, "%s_bucket{%s%sle=\"%g\"} %" PRIu64 "\n", name, labels, comma,
		        (double)stats_bounds_us[b] / 1e6, sum);
	}
	buf_printf(to, "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n", name, labels, comma, h->count);
	buf_printf(to, "%s_sum%s%s%s %.6f\n", name, open, labels, close, (double)h->sum_us / 1e6);
	buf_printf(to, "%s_count%s%s%s %" PRIu64 "\n", name, open, labels, close, h->count);
}

static const char *harness_name(const struct stats *s, unsigned i)
{
	return i ? s->harness[i].name : STATS_OTHER;
}

static const struct stats_histogram *of_run(const struct stats *s, unsigned harness, size_t i)
{
	return (const void *)((const char *)&s->harness[harness] + of_runs[i].offset);
}

/* One or, by status, several; those that have nothing yet are left out. */
static void run_histograms(const struct stats *s, unsigned harness, size_t i, struct buf *to)
{
	char labels[2 * NAME_MAX_LEN + 32];
	const struct stats_histogram *h = of_run(s, harness, i);
	int n = of_runs[i].by_status ? RUN_STATUS_COUNT : 1;
	for (int status = 0; status < n; status++) {
		if (!h[status].count)
			continue;
		int at = snprintf(
		        labels, sizeof(labels), "harness=\"%s\"", harness_name(s, harness));
		if (of_runs[i].by_status)
			(void)snprintf(labels + at, sizeof(labels) - (size_t)at, ",status=\"%s\"",
			        run_status_name((enum run_status)status));
		histogram_lines(to, of_runs[i].name, labels, &h[status]);
	}
}

static void histograms_text(const struct stats *s, struct buf *to)
{
	for (size_t i = 0; i < ARRAY_LEN(of_runs); i++) {
		head(to, of_runs[i].name, "histogram", of_runs[i].help);
		for (unsigned k = 0; k <= s->nharnesses; k++)
			run_histograms(s, k, i, to);
	}
	for (size_t i = 0; i < ARRAY_LEN(histograms); i++) {
		head(to, histograms[i].name, "histogram", histograms[i].help);
		histogram_lines(to, histograms[i].name, "",
		        (const void *)((const char *)s + histograms[i].offset));
	}
}

static void histogram_json(struct jw *w, const char *name, const struct stats_histogram *h)
{
	static const struct {
		const char *name;
		double part;
	} parts[] = {{"p50Ms", 0.5}, {"p90Ms", 0.9}, {"p95Ms", 0.95}, {"p99Ms", 0.99}};
	jw_open(w, name, '{');
	jw_int(w, "count", (int64_t)h->count);
	jw_num(w, "sumMs", (double)h->sum_us / 1e3);
	for (size_t i = 0; i < ARRAY_LEN(parts) && h->count; i++)
		jw_num(w, parts[i].name, (double)stats_quantile_us(h, parts[i].part) / 1e3);
	jw_close(w, '}');
}

/* Of one harness, all statuses together. */
static struct stats_histogram run_total(const struct stats *s, unsigned harness, size_t i)
{
	struct stats_histogram all = {.count = 0};
	int n = of_runs[i].by_status ? RUN_STATUS_COUNT : 1;
	for (int status = 0; status < n; status++)
		stats_add(&all, &of_run(s, harness, i)[status]);
	return all;
}

/* ---- runs by status ---- */

static void runs_json(struct jw *w, const uint64_t done[RUN_STATUS_COUNT])
{
	jw_open(w, "runs", '{');
	for (int s = 0; s < RUN_STATUS_COUNT; s++)
		jw_int(w, run_status_name((enum run_status)s), (int64_t)done[s]);
	jw_close(w, '}');
}

static void runs_text(const struct stats *s, struct buf *to)
{
	head(to, "agentbox_runs_total", "counter", "Runs ended, by status.");
	for (int i = 0; i < RUN_STATUS_COUNT; i++)
		buf_printf(to, "agentbox_runs_total{status=\"%s\"} %" PRIu64 "\n",
		        run_status_name((enum run_status)i), s->runs_done[i]);
	head(to, "agentbox_harness_runs_total", "counter", "The same by harness.");
	for (unsigned k = 0; k <= s->nharnesses; k++)
		for (int i = 0; i < RUN_STATUS_COUNT; i++)
			if (s->harness[k].done[i])
				buf_printf(to,
				        "agentbox_harness_runs_total{harness=\"%s\",status=\"%s\"} "
				        "%" PRIu64 "\n",
				        harness_name(s, k), run_status_name((enum run_status)i),
				        s->harness[k].done[i]);
}

static bool had_runs(const struct stats_harness *h)
{
	for (int i = 0; i < RUN_STATUS_COUNT; i++)
		if (h->done[i])
			return true;
	return false;
}

static void runs_all_json(const struct stats *s, struct jw *w)
{
	runs_json(w, s->runs_done);
	for (size_t i = 0; i < ARRAY_LEN(of_runs); i++) {
		struct stats_histogram all = {.count = 0}, one;
		for (unsigned k = 0; k <= s->nharnesses; k++) {
			one = run_total(s, k, i);
			stats_add(&all, &one);
		}
		histogram_json(w, of_runs[i].json, &all);
	}
	jw_open(w, "harnessRuns", '[');
	for (unsigned k = 0; k <= s->nharnesses; k++) {
		if (!had_runs(&s->harness[k]))
			continue;
		jw_open(w, NULL, '{');
		jw_str(w, "harness", harness_name(s, k));
		runs_json(w, s->harness[k].done);
		for (size_t i = 0; i < ARRAY_LEN(of_runs); i++) {
			struct stats_histogram one = run_total(s, k, i);
			histogram_json(w, of_runs[i].json, &one);
		}
		jw_close(w, '}');
	}
	jw_close(w, ']');
}

/* ---- the host and our processes ---- */

static void pressure_text(const struct machine_look *m, struct buf *to, const char *name, bool avg)
{
	for (int r = 0; r < MACHINE_RESOURCES; r++)
		for (int s = 0; s < MACHINE_STALLS; s++) {
			const struct machine_pressure *p = &m->pressure[r][s];
			if (!p->known)
				continue;
			buf_printf(to, "%s{resource=\"%s\",stall=\"%s\"} %.6f\n", name,
			        machine_resource_name((enum machine_resource)r),
			        machine_stall_name((enum machine_stall)s),
			        avg ? p->avg10 / 100 : (double)p->total_us / 1e6);
		}
}

static void machine_text(const struct machine_look *m, struct buf *to)
{
	head(to, "agentbox_host_load1", "gauge", "The host's load of the last minute.");
	if (m->loaded)
		buf_printf(to, "agentbox_host_load1 %.2f\n", m->load1);
	head(to, "agentbox_host_pressure_ratio", "gauge",
	        "Part of the last ten seconds that something stalled for want of it (PSI).");
	pressure_text(m, to, "agentbox_host_pressure_ratio", true);
	head(to, "agentbox_host_pressure_seconds_total", "counter",
	        "Time that something stalled for want of it (PSI).");
	pressure_text(m, to, "agentbox_host_pressure_seconds_total", false);
	head(to, "agentbox_process_cpu_seconds_total", "counter", "Processor time of our own.");
	for (int i = 0; i < MACHINE_PROCESSES; i++)
		if (m->used[i].known)
			buf_printf(to, "agentbox_process_cpu_seconds_total{process=\"%s\"} %.3f\n",
			        machine_process_name((enum machine_process)i),
			        (double)m->used[i].cpu_ms / 1e3);
	head(to, "agentbox_process_resident_bytes", "gauge", "Memory they have.");
	for (int i = 0; i < MACHINE_PROCESSES; i++)
		if (m->used[i].known)
			buf_printf(to,
			        "agentbox_process_resident_bytes{process=\"%s\"} %" PRIu64 "\n",
			        machine_process_name((enum machine_process)i),
			        m->used[i].resident_bytes);
}

static void machine_json(const struct machine_look *m, struct jw *w)
{
	jw_open(w, "host", '{');
	if (m->loaded)
		jw_num(w, "load1", m->load1);
	jw_open(w, "pressure", '{');
	for (int r = 0; r < MACHINE_RESOURCES; r++) {
		if (!m->pressure[r][MACHINE_SOME].known)
			continue;
		jw_open(w, machine_resource_name((enum machine_resource)r), '{');
		for (int s = 0; s < MACHINE_STALLS; s++)
			if (m->pressure[r][s].known)
				jw_num(w, machine_stall_name((enum machine_stall)s),
				        m->pressure[r][s].avg10 / 100);
		jw_close(w, '}');
	}
	jw_close(w, '}');
	jw_close(w, '}');
	jw_open(w, "processes", '[');
	for (int i = 0; i < MACHINE_PROCESSES; i++) {
		if (!m->used[i].known)
			continue;
		jw_open(w, NULL, '{');
		jw_str(w, "process", machine_process_name((enum machine_process)i));
		jw_int(w, "cpuMs", (int64_t)m->used[i].cpu_ms);
		jw_int(w, "residentBytes", (int64_t)m->used[i].resident_bytes);
		jw_close(w, '}');
	}
	jw_close(w, ']');
}

/* ---- all ---- */

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
	runs_text(m->stats, to);
	tokens_text(m->stats, to);
	histograms_text(m->stats, to);
	machine_text(&m->machine, to);
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
	runs_all_json(m->stats, &w);
	for (size_t i = 0; i < ARRAY_LEN(histograms); i++)
		histogram_json(&w, histograms[i].json,
		        (const void *)((const char *)m->stats + histograms[i].offset));
	machine_json(&m->machine, &w);
	jw_close(&w, '}');
}
