#include "supervisor/result.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "policy/layers.h"
#include "supervisor/active.h"
#include "supervisor/policies.h"
#include "supervisor/purses.h"

#include <errno.h>
#include <string.h>

static const char *reason(const struct run *r)
{
	static const char *const by_status[] = {
	        [RUN_SUCCEEDED] = "exit",
	        [RUN_FAILED] = "exit",
	        [RUN_CANCELLED] = "cancelled",
	        [RUN_TIMEOUT] = "timeout",
	        [RUN_OOM] = "oom",
	        [RUN_QUOTA] = "limit",
	        [RUN_BLOCKED] = "policy",
	        [RUN_INTERRUPTED] = "interrupted",
	};
	if (r->status == RUN_FAILED && (!r->exited || r->exit.error))
		return "not started";
	if (r->status == RUN_FAILED && r->exit.sig)
		return "signal";
	return by_status[r->status];
}

static void write_exit(const struct run *r, struct jw *w)
{
	jw_open(w, "exit", '{');
	if (r->exited && r->exit.error)
		jw_int(w, "code", jails_start_code(&r->exit));
	else if (r->exited && r->exit.sig)
		jw_int(w, "signal", r->exit.sig);
	else if (r->exited)
		jw_int(w, "code", r->exit.code);
	jw_str(w, "reason", reason(r));
	jw_close(w, '}');
}

/* What egress has metered counts, whatever the agent says; where it saw nothing, that does. */
static void write_metered(const struct run *r, const struct driver_usage *u, struct jw *w)
{
	jw_open(w, "usage", '{');
	purses_usage(w, &r->tokens, &r->spent);
	if (r->spent.unpriced && u->cost_usd >= 0)
		jw_num(w, "costUsd", u->cost_usd);
	jw_int(w, "turns", u->turns);
	jw_int(w, "requests", (int64_t)r->spent.sum.requests);
	jw_bool(w, "metered", true);
	jw_close(w, '}');
}

static void write_usage(const struct driver_usage *u, struct jw *w)
{
	jw_open(w, "usage", '{');
	jw_int(w, "inputTokens", u->input_tokens);
	jw_int(w, "outputTokens", u->output_tokens);
	jw_int(w, "cachedTokens", u->cached_tokens);
	if (u->cost_usd >= 0)
		jw_num(w, "costUsd", u->cost_usd);
	jw_int(w, "turns", u->turns);
	jw_close(w, '}');
}

static void write_artifacts(const struct artifacts_result *k, struct jw *w)
{
	jw_open(w, "artifacts", '[');
	for (size_t i = 0; i < k->nfiles; i++) {
		jw_open(w, NULL, '{');
		jw_str(w, "path", k->files[i].path);
		jw_int(w, "bytes", (int64_t)k->files[i].bytes);
		jw_str(w, "sha256", k->files[i].sha256);
		jw_close(w, '}');
	}
	jw_close(w, ']');
	if (!k->nskipped)
		return;
	jw_open(w, "skippedArtifacts", '[');
	for (size_t i = 0; i < k->nskipped; i++) {
		jw_open(w, NULL, '{');
		jw_str(w, "path", k->skipped[i].path);
		jw_str(w, "reason", k->skipped[i].reason);
		jw_close(w, '}');
	}
	jw_close(w, ']');
}

/* 0 where one is not known, or a clock was set back. */
static int64_t between(int64_t from, int64_t to)
{
	return from && to > from ? to - from : 0;
}

static int64_t ms_between(int64_t from_us, int64_t to_us)
{
	return between(from_us, to_us) / 1000;
}

static void write_times(const struct run *r, struct jw *w)
{
	int64_t now = clock_mono_us();
	jw_int(w, "durationMs", ms_between(r->slot_us, now));
	jw_int(w, "queuedMs", ms_between(r->queued_us, r->slot_us ? r->slot_us : now));
	jw_int(w, "startMs", ms_between(r->slot_us, r->started_us));
}

static void begin(struct jw *w, const char *run, const char *session, const char *harness,
        enum run_status status)
{
	jw_open(w, NULL, '{');
	jw_str(w, "runId", run);
	jw_str(w, "sessionId", session);
	jw_str(w, "harness", harness);
	jw_str(w, "status", run_status_name(status));
}

void result_write(struct run *r, struct buf *to)
{
	static const struct driver_usage unknown = {.cost_usd = -1};
	const char *text = r->has_outcome ? r->outcome.final_text : "";
	auto_buf struct buf layers = BUF_INIT(4096);
	policies_layers_json(r->layers, &layers);
	buf_clear(to);
	struct jw w = JW_INIT(to);
	begin(&w, r->id, r->session->id, r->harness->name, r->status);
	jw_bytes(&w, "finalText", text, strnlen(text, LIMIT_FINAL_TEXT));
	write_artifacts(&r->kept, &w);
	const struct driver_usage *usage = r->has_outcome ? &r->outcome.usage : &unknown;
	if (r->spent.sum.requests)
		write_metered(r, usage, &w);
	else
		write_usage(usage, &w);
	write_times(r, &w);
	jw_int(&w, "toolCalls", r->has_outcome ? r->outcome.tool_calls : 0);
	jw_int(&w, "attempts", r->slot_us ? 1 : 0);
	write_exit(r, &w);
	jails_resources(&w, &r->end.resources);
	egress_totals_write(&r->egress, &w);
	jw_raw(&w, "layers", layers.p, layers.len);
	jw_str(&w, "error", r->error);
	if (r->status != RUN_SUCCEEDED && r->stderr_tail.len)
		jw_bytes(&w, "stderrTail", r->stderr_tail.p, r->stderr_tail.len);
	jw_close(&w, '}');
}

void result_interrupted(const struct result_lost *x, struct buf *to)
{
	static const struct driver_usage unknown = {.cost_usd = -1};
	static const struct jail_resources none;
	static const struct artifacts_result nothing;
	struct egress_totals nowhere = {0};
	buf_clear(to);
	struct jw w = JW_INIT(to);
	begin(&w, x->run, x->session, x->harness, RUN_INTERRUPTED);
	jw_str(&w, "finalText", "");
	write_artifacts(&nothing, &w);
	write_usage(&unknown, &w);
	jw_int(&w, "durationMs", between(x->started_ms, x->ended_ms));
	jw_int(&w, "queuedMs", between(x->created_ms, x->started_ms ? x->started_ms : x->ended_ms));
	jw_int(&w, "startMs", 0);
	jw_int(&w, "toolCalls", 0);
	jw_int(&w, "attempts", 1);
	jw_open(&w, "exit", '{');
	jw_str(&w, "reason", "interrupted");
	jw_close(&w, '}');
	jails_resources(&w, &none);
	egress_totals_write(&nowhere, &w);
	jw_open(&w, "layers", '[');
	jw_close(&w, ']');
	jw_str(&w, "error", x->error);
	jw_close(&w, '}');
}
