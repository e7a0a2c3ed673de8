#include "supervisor/result.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "policy/layers.h"
#include "supervisor/active.h"
#include "supervisor/policies.h"
#include "supervisor/daemon.h"
#include "supervisor/purses.h"
#include "supervisor/uploads.h"
#include "supervisor/verify.h"

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
	if (r->stays && r->status == RUN_SUCCEEDED)
		return "kept";
	if (r->harness->nsteps && r->status == RUN_FAILED)
		return "step";
	if (r->status == RUN_FAILED && r->verify && r->verify->done)
		return "verification";
	if (r->status == RUN_TIMEOUT && !r->slot_us)
		return "queue";
	if (r->status == RUN_FAILED && r->out_of_turns)
		return "limit";
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

/* `pending`: they are to be uploaded, too. */
static void write_artifacts(const struct artifacts_result *k, bool pending, struct jw *w)
{
	jw_open(w, "artifacts", '[');
	for (size_t i = 0; i < k->nfiles; i++) {
		jw_open(w, NULL, '{');
		jw_str(w, "path", k->files[i].path);
		jw_int(w, "bytes", (int64_t)k->files[i].bytes);
		jw_str(w, "sha256", k->files[i].sha256);
		if (pending) {
			jw_open(w, "upload", '{');
			jw_str(w, "status", "pending");
			jw_close(w, '}');
		}
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
	jw_int(w, "collectMs", ms_between(r->collect_us, now));
}

/* Sums of the attempt alone; the peaks are the jail's. */
static struct jail_resources since(
        const struct jail_resources *now, const struct jail_resources *was)
{
	struct jail_resources x = *now;
	x.cpu_us -= was->cpu_us < x.cpu_us ? was->cpu_us : x.cpu_us;
	x.io_read_bytes -=
	        was->io_read_bytes < x.io_read_bytes ? was->io_read_bytes : x.io_read_bytes;
	x.io_write_bytes -=
	        was->io_write_bytes < x.io_write_bytes ? was->io_write_bytes : x.io_write_bytes;
	x.egress_bytes -= was->egress_bytes < x.egress_bytes ? was->egress_bytes : x.egress_bytes;
	return x;
}

struct jail_resources result_used(const struct run *r)
{
	return since(&r->end.resources, &r->before);
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
	const char *text = r->has_outcome && !r->withheld ? r->outcome.final_text : "";
	auto_buf struct buf layers = BUF_INIT(4096);
	policies_layers_json(r->layers, &layers);
	buf_clear(to);
	struct jw w = JW_INIT(to);
	begin(&w, r->id, r->session->id, r->harness->name, r->status);
	jw_bytes(&w, "finalText", text, strnlen(text, LIMIT_FINAL_TEXT));
	write_artifacts(&r->kept, uploads_place(r->d->uploads) != NULL, &w);
	struct driver_usage usage =
	        attempts_usage(&r->past, r->has_outcome ? &r->outcome.usage : &unknown);
	if (r->spent.sum.requests)
		write_metered(r, &usage, &w);
	else
		write_usage(&usage, &w);
	write_times(r, &w);
	jw_int(&w, "toolCalls", r->past.tool_calls + (r->has_outcome ? r->outcome.tool_calls : 0));
	jw_int(&w, "attempts", r->slot_us ? r->attempt : 0);
	write_exit(r, &w);
	struct jail_resources used = result_used(r);
	used = attempts_used(&r->past, &used);
	jails_resources(&w, &used);
	egress_totals_write(&r->egress, &w);
	jw_raw(&w, "layers", layers.p, layers.len);
	if (r->verify && r->verify->done) {
		jw_open(&w, "verification", '{');
		verify_members(r->verify, &w);
		jw_close(&w, '}');
	}
	if (r->harness->nsteps)
		jw_raw(&w, "steps", r->steps ? r->steps : "[]", r->steps ? strlen(r->steps) : 2);
	if (r->checkout.result.len)
		jw_raw(&w, "repo", r->checkout.result.p, r->checkout.result.len);
	if (r->rule[0]) {
		jw_open(&w, "guardrail", '{');
		jw_str(&w, "stage", r->withheld ? "output" : "input");
		jw_str(&w, "rule", r->rule);
		jw_close(&w, '}');
	}
	bool its_words = r->withheld && r->status == RUN_FAILED;
	jw_str(&w, "error", its_words ? "withheld: guardrails deny its output" : r->error);
	if (r->status != RUN_SUCCEEDED && r->stderr_tail.len && !r->withheld)
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
	write_artifacts(&nothing, false, &w);
	write_usage(&unknown, &w);
	jw_int(&w, "durationMs", between(x->started_ms, x->ended_ms));
	jw_int(&w, "queuedMs", between(x->created_ms, x->started_ms ? x->started_ms : x->ended_ms));
	jw_int(&w, "startMs", 0);
	jw_int(&w, "collectMs", 0);
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
