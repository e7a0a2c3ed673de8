/*
 * Pipelines: a run whose steps are runs.
 *
 * Theory of operation.  A pipeline goes through the table of run.h like any run,
 * with performers of its own, but for one thing: when its turn has come it gives
 * the slot back and holds its session instead (session.piped).  Its steps stand
 * in line there, as runs of their own; other runs of the session wait.
 *
 * What comes next is never remembered, it is looked up (runs_steps_look): the runs of the
 * steps in the store, each of which is there once (parent and step are unique),
 * and what the log says of questions and answers.  So it does not matter where
 * it was interrupted.  An answer is in the log before it is acknowledged.
 */
#include "supervisor/runs_steps.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "drivers/emit.h"
#include "supervisor/active.h"
#include "supervisor/daemon.h"
#include "supervisor/eventlog.h"
#include "supervisor/harnesses.h"
#include "supervisor/journal.h"
#include "supervisor/params.h"
#include "supervisor/plan.h"
#include "supervisor/runner_end.h"
#include "supervisor/runs.h"
#include "supervisor/runs_private.h"
#include "supervisor/said.h"
#include "supervisor/store.h"
#include "supervisor/trace.h"
#include "supervisor/traces.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
	AGAIN_MS = 1000, /* the store could not take a step: a full disk */
	ENDING_MS = 50,  /* the commit that ends a run which was not taken up */
};

/* ---- the steps there are ---- */

static void latest_row(void *ctx, const struct store_run *x)
{
	struct step_latest *l = ctx;
	auto_json struct json *result =
	        x->result ? json_parse(x->result, strlen(x->result), NULL) : NULL;
	l->step = x->step;
	l->over = x->result != NULL;
	(void)str_copy(l->id, sizeof(l->id), x->id);
	(void)str_copy(l->status, sizeof(l->status), x->status);
	free(l->text);
	l->text = result ? xstrdup(json_str(result, "finalText", "")) : NULL;
}

static bool step_runs(const struct run *r)
{
	return r->child[0] && runs_active(r->runs, r->child);
}

/* ---- what is told ---- */

static void tell_step(struct run *r, enum event_type t, uint8_t bit, unsigned step, const char *run,
        const char *status)
{
	const struct harness_step *s = &r->harness->steps[step - 1];
	if (r->told[step - 1] & bit)
		return;
	r->told[step - 1] |= bit;
	auto_buf struct buf b = BUF_INIT(4096);
	struct jw w = JW_INIT(&b);
	jw_int(&w, "step", step);
	jw_int(&w, "of", (int64_t)r->harness->nsteps);
	jw_str(&w, "harness", s->harness);
	jw_str(&w, "runId", run);
	jw_str(&w, "status", status);
	active_emit(r, t, b.p, b.len);
}

static void tell_started(struct run *r)
{
	auto_buf struct buf b = BUF_INIT(4096);
	struct jw w = JW_INIT(&b);
	jw_str(&w, "harness", r->harness->name);
	jw_str(&w, "backend", r->harness->backend);
	jw_int(&w, "steps", (int64_t)r->harness->nsteps);
	jw_int(&w, "attempt", 1);
	traces_member(r->d->traces, r->id, r->trace, &w);
	active_emit(r, EVENT_RUN_STARTED, b.p, b.len);
}

/* ---- its session ---- */

static void take_session(struct run *r)
{
	sched_leave(r->runs->sched, &r->job, clock_mono_us());
	bool held = sched_hold(r->runs->sched, &r->session->lane);
	assert(held && !r->session->piped); /* it was this run's turn in it */
	r->session->piped = true;
	r->runs->pipelines++;
}

/* A command that came between two steps keeps it until it has ended. */
static void give_session(struct run *r)
{
	struct session *x = r->session;
	bool kept = x->steps.held;
	x->piped = false;
	r->runs->pipelines--;
	sched_unhold(r->runs->sched, kept ? &x->steps : &x->lane);
}

/* ---- its end ---- */

void runs_steps_end(struct run *r, enum run_status status, char *why)
{
	active_judge(r, status, why);
	free(why);
	active_step(r, RUN_EVENT_EXITED);
}

void runs_steps_deny(struct run *r, unsigned step, const char *how)
{
	runs_steps_end(r, RUN_CANCELLED,
	        xasprintf("step %u (%s) %s", step, r->harness->steps[step - 1].harness, how));
}

/* ---- the next step ---- */

/* What its texts may have for {{...}}: the pipeline's own, and of the step before. */
static char *step_params(const struct run *r, const struct harness_step *s, const struct harness *h,
        const struct step_latest *before, struct err *e)
{
	struct params p;
	if (params_parse(r->params, &p, e) < 0)
		return NULL;
	const char *names[PARAMS_LIMIT + PARAMS_ADDED], *values[ARRAY_LEN(names)];
	const struct {
		const char *name, *value;
	} own[] = {
	        {"prompt", r->prompt},
	        {"prev.finalText", before->text},
	        {"prev.runId", before->step ? before->id : NULL},
	};
	size_t n = 0;
	for (size_t i = 0; i < p.n && n < ARRAY_LEN(names) - ARRAY_LEN(own); i++) {
		names[n] = p.names[i];
		values[n++] = p.values[i];
	}
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (own[i].value && harness_text_has(s->prompt, strlen(s->prompt), own[i].name)) {
			names[n] = own[i].name;
			values[n++] = own[i].value;
		}
	char *params = params_settle(h, names, values, n);
	params_done(&p);
	return params ? params : xstrdup("{}");
}

static void over(struct run *r)
{
	if (r->state == RUN_STATE_RUNNING)
		runs_steps_look(r);
	else if (r->state == RUN_STATE_STOPPING)
		active_step(r, RUN_EVENT_EXITED);
	else if (r->state == RUN_STATE_KILLING)
		active_step(r, RUN_EVENT_GONE);
}

static void on_added(void *ctx, int rc, const struct run_info *info, const struct err *e)
{
	struct run *r = ctx;
	struct err ignored;
	r->replies--;
	r->adding = false;
	if (rc < 0) {
		log_err("r=%s: its next step waits: %s", r->id, e->text);
		if (r->state == RUN_STATE_RUNNING)
			active_timer(r, AGAIN_MS, runs_steps_look);
		else
			over(r);
	} else {
		const struct run *child = runs_active(r->runs, info->id);
		(void)str_copy(r->child, sizeof(r->child), info->id); /* an id */
		if (child)
			tell_step(r, EVENT_STEP_STARTED, TOLD_STARTED, child->step, info->id, NULL);
		if (r->state != RUN_STATE_RUNNING || r->judged)
			(void)!runs_cancel(r->runs, info->id, true, &ignored); /* or it has ended */
	}
	active_settle(r);
}

/* Its steps are of the trace that a pipeline is of, where there is one. */
static char *trace_for_step(const struct run *r, unsigned step)
{
	struct trace t;
	bool sampled = traces_sample(r->d->traces, r->id, r->trace, &t);
	if (!sampled && !t.given)
		return NULL;
	t.sampled = sampled;
	return trace_of_step(&t, r->id, step);
}

static void add(
        struct run *r, unsigned step, struct harness *h, const char *params, struct sched_need need)
{
	const struct harness_step *s = &r->harness->steps[step - 1];
	struct session *x;
	struct err e = {0};
	char *repo = store_checkout(r->d->store, r->id, &e);
	if (e.code < 0 || sessions_hold_id(r->d->sessions, r->session->id, &x, &e) < 0) {
		free(repo);
		harness_unref(h);
		active_timer(r, AGAIN_MS, runs_steps_look);
		return;
	}
	struct run *child = runs_new_run(r->runs, h, x);
	id_new("run", child->id);
	child->prompt = xstrdup(s->prompt);
	child->prompt_len = strlen(s->prompt);
	child->params = xstrdup(params);
	child->job.need = need;
	child->job.priority = r->job.priority;
	memcpy(child->parent, r->id, sizeof(child->parent));
	child->step = step;
	child->trace = trace_for_step(r, step);
	struct creation *c = xnew(struct creation);
	c->user = xstrdup(r->session->user);
	c->repo = repo;
	c->done = on_added;
	c->ctx = r;
	r->adding = true;
	r->replies++;
	runs_submit(r->runs, child, c);
}

static void begin_step(struct run *r, unsigned step, const struct step_latest *before)
{
	const struct harness_step *s = &r->harness->steps[step - 1];
	struct harness *h;
	struct err e;
	if (harnesses_get(r->d->harnesses, s->harness, &h, &e) < 0) {
		runs_steps_end(r, RUN_FAILED, xasprintf("step %u: %s", step, e.text));
		return;
	}
	auto_free char *params = step_params(r, s, h, before, &e);
	uint8_t told = r->told[step - 1];
	bool asks = s->approve && !(told & TOLD_ALLOWED);
	struct limits limits;
	if (params && !asks && plan_check(r->d, h, &limits, &e) < 0)
		free(take(params));
	if (params && !asks) {
		add(r, step, h, params, runs_need(r->runs, &limits));
		return;
	}
	harness_unref(h);
	if (!params)
		runs_steps_end(r, RUN_FAILED, xasprintf("step %u: %s", step, e.text));
	else if (told & TOLD_DENIED)
		runs_steps_deny(r, step, "was denied");
	else if (!(told & TOLD_ASKED))
		runs_steps_ask(r, step, params, before);
	if (r->state == RUN_STATE_RUNNING)
		runs_steps_wait(r);
}

/* The latest step has ended. */
static void after(struct run *r, const struct step_latest *l)
{
	tell_step(r, EVENT_STEP_STARTED, TOLD_STARTED, l->step, l->id, NULL); /* if it was not */
	tell_step(r, EVENT_STEP_DONE, TOLD_DONE, l->step, l->id, l->status);
	int status = run_status_by_name(l->status);
	if (status != RUN_SUCCEEDED)
		runs_steps_end(r, status < 0 ? RUN_FAILED : (enum run_status)status,
		        xasprintf("step %u (%s) ended as %s: run %s", l->step,
		                r->harness->steps[l->step - 1].harness, l->status, l->id));
	else if (l->step == r->harness->nsteps)
		runs_steps_end(r, RUN_SUCCEEDED, NULL);
	else if (!r->runs->stopping)
		begin_step(r, l->step + 1, l);
}

void runs_steps_look(struct run *r)
{
	struct step_latest l = {.step = 0};
	struct err e;
	if (r->state != RUN_STATE_RUNNING || r->adding || r->runs->held)
		return;
	if (r->judged) {
		active_step(r, RUN_EVENT_EXITED);
		return;
	}
	if (store_steps(r->d->store, r->id, latest_row, &l, &e) < 0) {
		log_err("r=%s: %s", r->id, e.text);
		active_timer(r, AGAIN_MS, runs_steps_look);
	} else if (!l.step) {
		if (!r->runs->stopping)
			begin_step(r, 1, &l);
	} else if (l.over) {
		after(r, &l);
	} else {
		memcpy(r->child, l.id, sizeof(r->child));
		tell_step(r, EVENT_STEP_STARTED, TOLD_STARTED, l.step, l.id, NULL);
		if (!step_runs(r)) /* what was left of it is being ended */
			active_timer(r, ENDING_MS, runs_steps_look);
	}
	free(l.text);
}

void runs_step_over(struct runs *rs, const char *pipeline)
{
	struct run *r = runs_active(rs, pipeline);
	if (r)
		over(r);
}

/* ---- effects ---- */

/* A cancel that was accepted is not forgotten. */
static void begin_journal(struct run *r)
{
	struct err e;
	r->journal = journal_new(r->d->journals_fd, r->id, &e);
	if (!r->journal)
		log_warn("r=%s: %s", r->id, e.text);
}

static void effect_make(struct run *r)
{
	r->slot_us = clock_mono_us();
	store_start_run(r->d->store, r->id, clock_wall_ms());
	take_session(r);
	begin_journal(r);
	tell_started(r);
	active_step(r, RUN_EVENT_STARTED);
}

static void effect_stop(struct run *r)
{
	struct err e;
	runs_steps_give_up(r);
	if (step_runs(r))
		(void)!runs_cancel(r->runs, r->child, false, &e); /* or it is about to end */
	else if (!r->adding)
		active_step(r, RUN_EVENT_EXITED);
}

static void effect_kill(struct run *r)
{
	struct err e;
	runs_steps_give_up(r);
	if (step_runs(r))
		(void)!runs_cancel(r->runs, r->child, true, &e);
	else if (!r->adding)
		active_step(r, RUN_EVENT_GONE);
}

static void effect_drain(struct run *r)
{
	active_step(r, RUN_EVENT_DRAINED);
}

static void effect_verify(struct run *r)
{
	active_step(r, RUN_EVENT_VERIFIED);
}

static void nothing(struct run *r)
{
	(void)r;
}

/* A state that has no row of its own for pipelines cannot be reached by one. */
void (*const runs_step_effects[RUN_EFFECT_COUNT])(struct run *r) = {
        [RUN_EFFECT_MAKE] = effect_make,
        [RUN_EFFECT_SEED] = nothing,
        [RUN_EFFECT_EXEC] = nothing,
        [RUN_EFFECT_PUMP] = runs_steps_look,
        [RUN_EFFECT_RESUME] = runs_steps_look,
        [RUN_EFFECT_INTERRUPT] = effect_stop,
        [RUN_EFFECT_KILL] = effect_kill,
        [RUN_EFFECT_DRAIN] = effect_drain,
        [RUN_EFFECT_VERIFY] = effect_verify,
        [RUN_EFFECT_UNVERIFY] = nothing,
        [RUN_EFFECT_REST] = nothing,
        [RUN_EFFECT_DISMISS] = nothing,
        [RUN_EFFECT_KEEP] = nothing,
        [RUN_EFFECT_COLLECT] = runs_steps_sum,
        [RUN_EFFECT_RELEASE] = give_session,
        [RUN_EFFECT_SAVE] = runner_end_save,
        [RUN_EFFECT_PAUSE] = nothing,
        [RUN_EFFECT_ENQUEUE] = nothing,
        [RUN_EFFECT_AGAIN] = nothing,
        [RUN_EFFECT_FINISH] = runner_end_finish,
};

/* ---- after a restart ---- */

static void was_told(struct run *r, const char *type, const struct json *event)
{
	static const struct {
		const char *type;
		uint8_t bit;
	} rows[] = {{"step.started", TOLD_STARTED}, {"step.done", TOLD_DONE}};
	int64_t step = json_int(event, "step", 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(type, rows[i].type) == 0 && step > 0 &&
		        step <= (int64_t)r->harness->nsteps)
			r->told[step - 1] |= rows[i].bit;
}

static void recall(void *ctx, const char *type, size_t type_len, const char *line, size_t n)
{
	struct run *r = ctx;
	char name[32] = "";
	if (type_len >= sizeof(name))
		return;
	memcpy(name, type, type_len);
	bool step = strncmp(name, "step.", 5) == 0;
	auto_json struct json *event =
	        step || strncmp(name, "permission.", 11) == 0 ? json_parse(line, n, NULL) : NULL;
	if (event && step)
		was_told(r, name, event);
	else if (event)
		runs_steps_asked_before(r, name, event);
}

void runs_steps_revive(struct run *r, int64_t started_ms)
{
	struct err e;
	int64_t now_ms = clock_wall_ms(), now_us = clock_mono_us();
	int64_t begun_ms = started_ms > 0 && started_ms < now_ms ? started_ms : now_ms;
	r->slot_us = now_us - (now_ms - begun_ms) * 1000;
	r->queued_us =
	        r->slot_us - (begun_ms > r->created_ms ? begun_ms - r->created_ms : 0) * 1000;
	take_session(r);
	r->journal = journal_open(r->d->journals_fd, r->id, &e);
	const struct journal_state *kept = r->journal ? journal_state(r->journal) : NULL;
	if (kept && kept->judged)
		active_judge(r, (enum run_status)kept->status, kept->why[0] ? kept->why : NULL);
	if (!r->journal)
		begin_journal(r);
	eventlog_each(r->d->log, r->session->id, r->id, r->from_seq, recall, r);
}

void runs_steps_go_on(struct run *r)
{
	auto_free char *started = eventlog_find(r->d->log, r->session->id, r->id, "run.started");
	if (!started)
		tell_started(r);
	log_info("r=%s: the pipeline goes on", r->id);
	active_step(r, RUN_EVENT_ADOPTED);
}
