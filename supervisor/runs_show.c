#include "supervisor/runs.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "supervisor/active.h"
#include "supervisor/daemon.h"
#include "supervisor/runs_private.h"
#include "supervisor/store.h"
#include "supervisor/traces.h"

#include <string.h>

enum { LIST_MAX = 1000 };

struct showing {
	struct runs *runs;
	struct jw w;
	bool whole;
	char last[ID_MAX];
	size_t n;
};

static void when(struct jw *w, const char *key, int64_t ms)
{
	char text[CLOCK_TEXT_MAX];
	if (!ms)
		return;
	clock_rfc3339(ms, text);
	jw_str(w, key, text);
}

/* The store lags behind by a commit: what is in memory is newer.  But how a run has ended is told
 * when its result can be read, and not before. */
static const char *status_of(struct runs *rs, const struct store_run *x)
{
	const struct run *r = x->result ? NULL : runs_active(rs, x->id);
	if (!r)
		return x->status;
	return r->slot_us ? "running" : "queued";
}

/* For a person: it works, and has asked something. */
static bool waits(const struct run *r)
{
	return r->state == RUN_STATE_RUNNING && r->asks.nopen;
}

static void show_step(void *ctx, const struct store_run *x)
{
	struct showing *v = ctx;
	jw_open(&v->w, NULL, '{');
	jw_int(&v->w, "step", x->step);
	jw_str(&v->w, "harness", x->harness);
	jw_str(&v->w, "runId", x->id);
	jw_str(&v->w, "status", status_of(v->runs, x));
	jw_close(&v->w, '}');
}

/* What there is of a pipeline up to now; then they are in the result. */
static void show_steps(struct showing *v, const struct store_run *x)
{
	struct err e;
	jw_open(&v->w, "steps", '[');
	(void)!store_steps(
	        v->runs->daemon->store, x->id, show_step, v, &e); /* then there are none */
	jw_close(&v->w, ']');
}

static void show(void *ctx, const struct store_run *x)
{
	struct showing *v = ctx;
	struct run *r = x->result ? NULL : runs_active(v->runs, x->id);
	jw_open(&v->w, NULL, '{');
	jw_str(&v->w, "runId", x->id);
	jw_str(&v->w, "sessionId", x->session);
	owner_json(&v->w, x->user);
	jw_str(&v->w, "goalId", x->goal);
	jw_str(&v->w, "harness", x->harness);
	jw_str(&v->w, "status", status_of(v->runs, x));
	if (r)
		jw_str(&v->w, "state", waits(r) ? "waiting" : run_state_name(r->state));
	jw_str(&v->w, "pipelineRunId", x->parent);
	if (x->parent)
		jw_int(&v->w, "step", x->step);
	when(&v->w, "createdAt", x->created_ms);
	when(&v->w, "startedAt", x->started_ms);
	when(&v->w, "endedAt", x->ended_ms);
	traces_member(v->runs->daemon->traces, x->id, x->trace, &v->w);
	jw_int(&v->w, "priority", x->priority);
	jw_int(&v->w, "fromSeq", (int64_t)x->from_seq);
	if (v->whole && x->params)
		jw_raw(&v->w, "params", x->params, strlen(x->params));
	if (v->whole && r && r->job.waiting)
		jw_int(&v->w, "position", (int64_t)sched_position(v->runs->sched, &r->job));
	if (v->whole && x->pipeline && !x->result)
		show_steps(v, x);
	if (v->whole && r && waits(r)) {
		jw_open(&v->w, "pending", '[');
		asks_show(&r->asks, &v->w, clock_wall_ms(), clock_mono_us());
		jw_close(&v->w, ']');
	}
	if (v->whole && x->result) {
		auto_free char *now = runs_result_now(v->runs, x->id, x->result);
		jw_raw(&v->w, "result", now, strlen(now));
	}
	jw_close(&v->w, '}');
	(void)str_copy(v->last, sizeof(v->last), x->id);
	v->n++;
}

int runs_show(struct runs *rs, const char *id, struct buf *json, struct err *e)
{
	struct showing v = {.runs = rs, .w = JW_INIT(json), .whole = true};
	return store_run(rs->daemon->store, id, show, &v, e);
}

struct result_of {
	struct runs *runs;
	struct buf *to;
};

static void result_of(void *ctx, const struct store_run *x)
{
	struct result_of *v = ctx;
	auto_free char *now = x->result ? runs_result_now(v->runs, x->id, x->result) : NULL;
	if (now)
		buf_puts(v->to, now);
}

int runs_result(struct runs *rs, const char *id, struct buf *json, struct err *e)
{
	struct result_of v = {rs, json};
	int rc = store_run(rs->daemon->store, id, result_of, &v, e);
	return rc == 0 && !json->len ? err_set(e, -ENOENT, "run %s has no result", id) : rc;
}

int runs_list(struct runs *rs, const struct runs_filter *f, struct buf *json, char ret_next[ID_MAX],
        struct err *e)
{
	struct showing v = {.runs = rs, .w = JW_INIT(json)};
	struct store_run_filter q = {
	        .user = f->user,
	        .goal = f->goal,
	        .session = f->session,
	        .harness = f->harness,
	        .status = f->status,
	        .cursor = f->cursor,
	        .since = f->since,
	        .until = f->until,
	        .view = f->view,
	        .limit = f->limit && f->limit < LIST_MAX ? f->limit : LIST_MAX,
	};
	int rc = store_runs(rs->daemon->store, &q, show, &v, e);
	if (rc == 0)
		(void)str_copy(ret_next, ID_MAX, v.n == q.limit ? v.last : "");
	return rc;
}

struct inform {
	struct runs *runs;
	struct run_info *to;
};

static void inform(void *ctx, const struct store_run *x)
{
	struct inform *v = ctx;
	struct run_info *to = v->to;
	(void)str_copy(to->id, sizeof(to->id), x->id);
	(void)str_copy(to->session, sizeof(to->session), x->session);
	(void)str_copy(to->harness, sizeof(to->harness), x->harness);
	(void)str_copy(to->status, sizeof(to->status), status_of(v->runs, x));
	to->from_seq = x->from_seq;
	/* Its result is on the disk a moment before its last event is told: till then it is
	 * followed. */
	const struct run *r = runs_active(v->runs, x->id);
	to->finished = x->result && !r;
	to->guarded = r && r->harness->nguard_output;
	to->existed = false;
}

int runs_info(struct runs *rs, const char *id, struct run_info *ret, struct err *e)
{
	struct inform v = {rs, ret};
	return store_run(rs->daemon->store, id, inform, &v, e);
}
