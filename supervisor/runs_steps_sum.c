/*
 * What a pipeline has of the harnesses of its steps, and of their runs: whether
 * it may be accepted, and what they come to together.
 */
#include "supervisor/runs_steps.h"

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/active.h"
#include "supervisor/daemon.h"
#include "supervisor/harnesses.h"
#include "supervisor/params.h"
#include "supervisor/plan.h"
#include "supervisor/runs.h"
#include "supervisor/runs_private.h"
#include "supervisor/store.h"

#include <string.h>

/* ---- before it is accepted ---- */

static int check_values(const struct harness *x, const struct harness *h,
        const struct run_request *q, struct err *e)
{
	for (size_t i = 0; i < x->nparams; i++) {
		const struct harness_param *p = &x->params[i], *of = harness_param(h, p->name);
		const char *value = of ? of->dflt : NULL;
		for (size_t k = 0; k < q->nparams; k++)
			if (strcmp(q->param_names[k], p->name) == 0)
				value = q->param_values[k];
		if (value && harness_param_fits(p, value, e) < 0)
			return err_wrap(e, "harness '%s'", x->name);
	}
	return 0;
}

/* Could it ever run, whatever else does? */
static int check_need(struct runs *rs, struct harness *x, const char *owner, struct err *e)
{
	struct limits limits;
	int rc = plan_check(rs->daemon, x, &limits, e);
	if (rc < 0)
		return rc;
	const struct sched_ask ask = {.owner = owner, .need = runs_need(rs, &limits)};
	rc = sched_room(rs->sched, &ask, e);
	return rc == -ENOEXEC ? err_wrap(e, "harness '%s'", x->name) : 0;
}

int runs_steps_check(
        struct runs *rs, const struct harness *h, const struct run_request *q, struct err *e)
{
	bool heard = !h->nsteps || q->prompt_len == 0;
	for (size_t i = 0; i < h->nsteps; i++) {
		struct harness *x;
		const char *text = h->steps[i].prompt;
		int rc = harnesses_get(rs->daemon->harnesses, h->steps[i].harness, &x, e);
		if (rc < 0)
			return rc;
		rc = check_values(x, h, q, e);
		if (rc == 0)
			rc = check_need(rs, x, q->user, e);
		harness_unref(x);
		if (rc < 0)
			return rc;
		heard |= harness_text_has(text, strlen(text), "prompt");
	}
	return heard ? 0
	             : err_set(e, -EINVAL,
	                       "prompt: no step of harness '%s' has {{prompt}}; leave it empty",
	                       h->name);
}

/* ---- when it is over ---- */

struct adding_up {
	struct run *run;
	struct jw w;
	bool priced;
};

static void add_resources(struct jail_resources *sum, const struct json *x)
{
	uint64_t memory = (uint64_t)json_int(x, "memoryPeakBytes", 0);
	uint64_t pids = (uint64_t)json_int(x, "pidsPeak", 0);
	sum->cpu_us += (uint64_t)json_int(x, "cpuMs", 0) * 1000;
	sum->io_read_bytes += (uint64_t)json_int(x, "ioReadBytes", 0);
	sum->io_write_bytes += (uint64_t)json_int(x, "ioWriteBytes", 0);
	sum->egress_bytes += (uint64_t)json_int(x, "egressBytes", 0);
	if (memory > sum->memory_peak_bytes)
		sum->memory_peak_bytes = memory;
	if (pids > sum->pids_peak)
		sum->pids_peak = pids;
}

static void add_up(void *ctx, const struct store_run *x)
{
	struct adding_up *a = ctx;
	struct driver_outcome *o = &a->run->outcome;
	auto_json struct json *result =
	        x->result ? json_parse(x->result, strlen(x->result), NULL) : NULL;
	const struct json *usage = json_get(result, "usage");
	int64_t artifacts = 0;
	for (const struct json *f = json_first(json_get(result, "artifacts")); f; f = json_next(f))
		artifacts++;
	double cost = json_num(usage, "costUsd", -1);
	jw_open(&a->w, NULL, '{');
	jw_int(&a->w, "step", x->step);
	jw_str(&a->w, "harness", x->harness);
	jw_str(&a->w, "runId", x->id);
	jw_str(&a->w, "status", x->status);
	jw_int(&a->w, "durationMs", json_int(result, "durationMs", 0));
	jw_int(&a->w, "artifacts", artifacts);
	jw_str(&a->w, "error", json_str(result, "error", NULL));
	jw_close(&a->w, '}');
	o->usage.input_tokens += json_int(usage, "inputTokens", 0);
	o->usage.output_tokens += json_int(usage, "outputTokens", 0);
	o->usage.cached_tokens += json_int(usage, "cachedTokens", 0);
	o->usage.turns += json_int(usage, "turns", 0);
	o->tool_calls += json_int(result, "toolCalls", 0);
	if (cost >= 0)
		o->usage.cost_usd = (a->priced ? o->usage.cost_usd : 0) + cost;
	a->priced |= cost >= 0;
	add_resources(&a->run->end.resources, json_get(result, "resources"));
	free(o->final_text);
	o->final_text = xstrdup(json_str(result, "finalText", ""));
}

void runs_steps_sum(struct run *r)
{
	struct err e;
	auto_buf struct buf b = BUF_INIT(1 << 20);
	struct adding_up a = {.run = r, .w = JW_INIT(&b)};
	r->outcome.final_text = xstrdup("");
	r->outcome.usage.cost_usd = -1;
	r->has_outcome = true;
	jw_open(&a.w, NULL, '[');
	if (store_steps(r->d->store, r->id, add_up, &a, &e) < 0)
		log_err("r=%s: %s", r->id, e.text);
	jw_close(&a.w, ']');
	r->steps = b.failed ? NULL : buf_take(&b);
	active_step(r, RUN_EVENT_COLLECTED);
}
