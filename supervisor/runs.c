#include "supervisor/runs.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/active.h"
#include "supervisor/daemon.h"
#include "supervisor/digest.h"
#include "supervisor/eventlog.h"
#include "supervisor/harnesses.h"
#include "supervisor/hash.h"
#include "supervisor/params.h"
#include "supervisor/plan.h"
#include "supervisor/policies.h"
#include "supervisor/runner.h"
#include "supervisor/runner_talk.h"
#include "supervisor/runner_work.h"
#include "supervisor/runs_private.h"
#include "supervisor/store.h"

#include <stdio.h>
#include <string.h>

enum { KEY_MAX = 256 };

/* ---- life ---- */

struct runs *runs_new(struct daemon *d)
{
	struct runs *rs = xnew(struct runs);
	rs->daemon = d;
	for (size_t i = 0; i < RUNS_BUCKETS; i++)
		list_init(&rs->active[i]);
	list_init(&rs->left);
	rs->sched = sched_new(1, LIMIT_QUEUED_RUNS);
	return rs;
}

void runs_free(struct runs *rs)
{
	if (!rs)
		return;
	for (size_t i = 0; i < RUNS_BUCKETS; i++)
		list_for_each (r, &rs->active[i], struct run, link)
			active_free(r);
	sched_free(rs->sched);
	free(rs);
}

struct run *runs_active(struct runs *rs, const char *id)
{
	list_for_each (r, &rs->active[hash_text(id) % RUNS_BUCKETS], struct run, link)
		if (strcmp(r->id, id) == 0)
			return r;
	return NULL;
}

/* ---- scheduling ---- */

/* Root's configuration comes with the policies and may change with them. */
void runs_take_limits(struct runs *rs)
{
	const struct policy_set *set = policies_set(rs->daemon->policies);
	size_t running = set && set->config.max_runs ? set->config.max_runs : 1;
	size_t waiting = set && set->config.max_queued ? set->config.max_queued : LIMIT_QUEUED_RUNS;
	sched_limits(rs->sched, running, waiting < LIMIT_QUEUED_RUNS ? waiting : LIMIT_QUEUED_RUNS);
}

static void count(struct runs *rs)
{
	rs->daemon->stats.runs_running = sched_running(rs->sched);
	rs->daemon->stats.runs_queued = sched_waiting(rs->sched);
}

/* A step may end a run at once and call for the next: `scheduling` keeps that a loop. */
void runs_schedule(struct runs *rs)
{
	rs->again = true;
	if (rs->scheduling)
		return;
	rs->scheduling = true;
	while (rs->again) {
		rs->again = false;
		struct sched_job *j;
		while (!rs->stopping && !rs->held && policies_ready(rs->daemon->policies) &&
		        (j = sched_next(rs->sched)) != NULL) {
			struct run *r = container_of(j, struct run, job);
			active_step(r, RUN_EVENT_SLOT);
		}
	}
	rs->scheduling = false;
	count(rs);
}

static void emit_queued(struct run *r, size_t position)
{
	char members[64];
	int n = snprintf(members, sizeof(members), "\"position\":%zu", position);
	active_emit(r, EVENT_RUN_QUEUED, members, (size_t)n);
}

void runs_enqueue(struct runs *rs, struct run *r)
{
	size_t position;
	r->queued_us = clock_mono_us();
	sched_add(rs->sched, &r->job, &r->session->lane, r->session->user, r->job.priority,
	        &position);
	emit_queued(r, position);
	runs_schedule(rs);
}

static void check_stopped(struct runs *rs)
{
	if (!rs->stopping || sched_running(rs->sched) || !rs->stopped)
		return;
	void (*told)(void *ctx) = rs->stopped;
	rs->stopped = NULL;
	told(rs->stopped_ctx);
}

void runs_finished(struct run *r)
{
	struct runs *rs = r->runs;
	struct stats *s = &rs->daemon->stats;
	s->runs_done[r->status]++;
	int64_t now = clock_mono_us();
	if (r->slot_us) {
		stats_observe(&s->duration, (now - r->slot_us) / 1000);
		stats_observe(&s->queued, (r->slot_us - r->queued_us) / 1000);
	}
	if (r->started_us)
		stats_observe(&s->start, (r->started_us - r->slot_us) / 1000);
	sched_leave(rs->sched, &r->job);
	sessions_drop(rs->daemon->sessions, take(r->session));
	list_remove(&r->link);
	list_append(&rs->active[hash_text("") % RUNS_BUCKETS], &r->link); /* until it is settled */
	r->id[0] = '\0';
	runs_schedule(rs);
	check_stopped(rs);
}

/* ---- creating ---- */

struct creation {
	struct runs *runs;
	struct run *run;
	uint64_t claim;
	char *user, *key; /* owned; key may be NULL */
	char hash[DIGEST_TEXT];
	runs_created_fn *done;
	void *ctx;
};

static void creation_free(struct creation *c)
{
	free(c->user);
	free(c->key);
	free(c);
}

static int check_request(const struct run_request *q, struct err *e)
{
	if (q->prompt_len > LIMIT_PROMPT)
		return err_set(e, -E2BIG, "prompt: longer than %d bytes", LIMIT_PROMPT);
	if (memchr(q->prompt, '\0', q->prompt_len))
		return err_set(e, -EINVAL, "prompt: has a NUL character");
	if (q->priority < 0 || q->priority > 9)
		return err_set(e, -EINVAL, "priority: from 0 to 9");
	if (q->nparams > PARAMS_LIMIT)
		return err_set(e, -EINVAL, "params: at most %d", PARAMS_LIMIT);
	if (q->idempotency_key && (!*q->idempotency_key || strlen(q->idempotency_key) > KEY_MAX))
		return err_set(e, -EINVAL, "idempotencyKey: from 1 to %d bytes", KEY_MAX);
	return 0;
}

/* What makes two requests with one key the same. */
static void request_hash(const struct run_request *q, const char *params, char ret[DIGEST_TEXT])
{
	struct digest *d = digest_new();
	const char *const parts[] = {q->goal, q->harness, params ? params : ""};
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		digest_add(d, parts[i], strlen(parts[i]) + 1); /* with NUL: no two joins alike */
	digest_add(d, q->prompt, q->prompt_len);
	digest_end(d, ret);
}

/* -ENOENT: a new key.  Else the earlier run, or -EBUSY for another request. */
static int known_key(struct runs *rs, const char *user, const char *key, const char *hash,
        struct run_info *ret, struct err *e)
{
	char run[ID_MAX], old[DIGEST_TEXT];
	int rc = key ? store_idempotent(rs->daemon->store, user, key, run, old) : -ENOENT;
	if (rc < 0)
		return err_set(e, rc, "idempotencyKey: not known");
	if (strcmp(old, hash) != 0)
		return err_set(
		        e, -EBUSY, "idempotencyKey: used before for another request (run %s)", run);
	rc = runs_info(rs, run, ret, e);
	ret->existed = true;
	return rc;
}

static void info_of(const struct run *r, struct run_info *ret)
{
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->id, r->id, sizeof(ret->id));
	memcpy(ret->session, r->session->id, sizeof(ret->session));
	(void)str_copy(ret->harness, sizeof(ret->harness), r->harness->name); /* a checked name */
	(void)str_copy(ret->status, sizeof(ret->status), r->job.waiting ? "queued" : "running");
	ret->from_seq = r->from_seq;
}

static void discard(struct run *r)
{
	sessions_drop(r->d->sessions, take(r->session));
	active_free(r);
}

static void created(void *ctx, int rc, const struct err *e)
{
	struct creation *c = ctx;
	struct runs *rs = c->runs;
	struct run *r = c->run;
	struct run_info info = {0};
	struct err again;
	rs->creating--;
	if (rc == 0) {
		eventlog_claimed(rs->daemon->log, r->session->id, c->claim);
		r->job.waiting = true; /* as the client will see it */
		info_of(r, &info);
		r->job.waiting = false;
		list_append(&rs->active[hash_text(r->id) % RUNS_BUCKETS], &r->link);
		runs_enqueue(rs, r);
	} else {
		/* The same key a moment ago: its run is committed by now. */
		discard(r);
		if (rc == -EEXIST && c->key) {
			rc = known_key(rs, c->user, c->key, c->hash, &info, &again);
			e = rc < 0 ? &again : NULL;
		}
	}
	c->done(c->ctx, rc, rc < 0 ? NULL : &info, e);
	creation_free(c);
}

static int admit(struct runs *rs, const struct run_request *q, struct harness **ret, struct err *e)
{
	if (rs->daemon->draining || rs->stopping)
		return err_set(e, -ESHUTDOWN, "the daemon is about to stop: no new runs");
	int rc = harnesses_get(rs->daemon->harnesses, q->harness, ret, e);
	if (rc < 0)
		return rc;
	rc = plan_check(rs->daemon, *ret, e);
	runs_take_limits(rs);
	if (rc == 0)
		rc = sched_room(rs->sched, e);
	if (rc == 0 && sched_waiting(rs->sched) + rs->creating >= LIMIT_QUEUED_RUNS)
		rc = err_set(e, -EAGAIN, "too many runs at once");
	if (rc < 0)
		harness_unref(take(*ret));
	return rc;
}

static struct run *run_new(struct runs *rs, struct harness *h, struct session *x)
{
	struct run *r = runner_new(rs->daemon,
	        &(struct runner_spec){
	                .runs = rs, .harness = h, .session = x, .finished = runs_finished});
	r->created_ms = clock_wall_ms();
	return r;
}

static void submit(struct runs *rs, struct run *r, struct creation *c)
{
	struct daemon *d = rs->daemon;
	c->claim = eventlog_claim(d->log, r->session->id);
	r->from_seq = eventlog_next_seq(d->log, r->session->id);
	struct store_session s = {
	        .id = r->session->id,
	        .user = r->session->user,
	        .goal = r->session->goal,
	        .created_ms = r->created_ms,
	        .reserved = c->claim,
	};
	struct store_run row = {
	        .id = r->id,
	        .session = r->session->id,
	        .harness = r->harness->name,
	        .prompt = r->prompt,
	        .prompt_len = r->prompt_len,
	        .params = r->params,
	        .priority = r->job.priority,
	        .created_ms = r->created_ms,
	        .from_seq = r->from_seq,
	};
	rs->creating++;
	store_add_run(d->store, &s, &row, c->key, c->hash, created, c);
}

static int prepare(struct runs *rs, const struct run_request *q, const char *params,
        struct run **ret, struct err *e)
{
	struct harness *h;
	struct session *x;
	int rc = admit(rs, q, &h, e);
	if (rc < 0)
		return rc;
	rc = sessions_hold(rs->daemon->sessions, q->user, q->goal, &x, e);
	if (rc == 0) {
		rc = eventlog_open(rs->daemon->log, x->id, e);
		if (rc < 0)
			sessions_drop(rs->daemon->sessions, x);
	}
	if (rc < 0) {
		harness_unref(h);
		return rc;
	}
	struct run *r = run_new(rs, h, x);
	id_new("run", r->id);
	r->prompt = xcalloc(1, q->prompt_len + 1);
	memcpy(r->prompt, q->prompt, q->prompt_len);
	r->prompt_len = q->prompt_len;
	r->params = params ? xstrdup(params) : NULL;
	r->job.priority = q->priority;
	*ret = r;
	return 0;
}

void runs_create(struct runs *rs, const struct run_request *q, runs_created_fn *done, void *ctx)
{
	struct err e;
	struct run_info info;
	struct run *r = NULL;
	char hash[DIGEST_TEXT];
	auto_free char *params = params_write(q->param_names, q->param_values, q->nparams);
	int rc = check_request(q, &e);
	if (rc == 0)
		rc = session_part_check("session.userId", q->user, &e);
	if (rc == 0)
		rc = session_part_check("session.goalId", q->goal, &e);
	if (rc == 0) {
		request_hash(q, params, hash);
		rc = known_key(rs, q->user, q->idempotency_key, hash, &info, &e);
		if (rc == 0) {
			done(ctx, 0, &info, NULL);
			return;
		}
		if (rc == -ENOENT)
			rc = prepare(rs, q, params, &r, &e);
	}
	if (!r) {
		done(ctx, rc, NULL, &e);
		return;
	}
	struct creation *c = xnew(struct creation);
	c->runs = rs;
	c->run = r;
	c->user = xstrdup(q->user);
	c->key = q->idempotency_key ? xstrdup(q->idempotency_key) : NULL;
	memcpy(c->hash, hash, sizeof(c->hash));
	c->done = done;
	c->ctx = ctx;
	submit(rs, r, c);
}

/* ---- steering ---- */

/* 0: it is on its way into or out of memory; -ENOENT; or it has ended: `ended`. */
static int not_active(struct runs *rs, const char *id, int ended, struct err *e)
{
	struct run_info info;
	int rc = runs_info(rs, id, &info, e);
	if (rc == 0 && info.finished)
		rc = err_set(e, ended, "run %s has ended: %s", id, info.status);
	return rc;
}

int runs_cancel(struct runs *rs, const char *id, bool now, struct err *e)
{
	struct run *r = runs_active(rs, id);
	if (!r)
		return not_active(rs, id, -EALREADY, e);
	active_judge(r, RUN_CANCELLED, NULL);
	bool waiting = r->job.waiting;
	if (waiting)
		sched_leave(rs->sched, &r->job);
	active_step(r, now ? RUN_EVENT_END : RUN_EVENT_CANCEL);
	if (waiting)
		runs_schedule(rs);
	return 0;
}

int runs_say(struct runs *rs, const char *id, const struct said *s, struct err *e)
{
	struct run *r = runs_active(rs, id);
	if (r)
		return runner_talk_say(r, s, e);
	int rc = not_active(rs, id, -EBUSY, e);
	return rc < 0 ? rc : err_set(e, -EBUSY, "run %s is about to begin or to end", id);
}

int runs_keep_session(struct runs *rs, const char *id, struct session **ret, struct err *e)
{
	struct session *x;
	int rc = sessions_hold_id(rs->daemon->sessions, id, &x, e);
	if (rc < 0)
		return rc;
	if (!sched_hold(rs->sched, &x->lane)) {
		sessions_drop(rs->daemon->sessions, x);
		return err_set(
		        e, -EBUSY, "a run or command of session %s is just starting or ending", id);
	}
	*ret = x;
	return 0;
}

void runs_let_session(struct runs *rs, struct session *x)
{
	sched_unhold(rs->sched, &x->lane);
	sessions_drop(rs->daemon->sessions, x);
	runs_schedule(rs);
}

/* ---- a handover ---- */

/* Where the next supervisor goes on without losing a byte or doing anything twice.  Copying
 * artifacts is begun anew, and a result that waits for room on the disk cannot be waited for. */
static bool can_be_left(const struct run *r)
{
	switch (r->state) {
	case RUN_STATE_QUEUED:
	case RUN_STATE_RUNNING:
	case RUN_STATE_STOPPING:
	case RUN_STATE_KILLING:
	case RUN_STATE_DRAINING:
	case RUN_STATE_COLLECTING:
	case RUN_STATE_DONE:
		return true;
	case RUN_STATE_MAKING:
	case RUN_STATE_UNMAKING:
	case RUN_STATE_SEEDING:
	case RUN_STATE_STARTING:
	case RUN_STATE_SAVING:
	case RUN_STATE_COUNT:
		return false;
	}
	return false;
}

bool runs_hand_over(struct runs *rs)
{
	bool all = rs->creating == 0;
	rs->held = true;
	for (size_t i = 0; i < RUNS_BUCKETS; i++)
		list_for_each (r, &rs->active[i], struct run, link) {
			runner_work_hold(r);
			all &= can_be_left(r);
		}
	return all;
}

void runs_stop(struct runs *rs, void (*done)(void *ctx), void *ctx)
{
	rs->stopping = true;
	rs->stopped = done;
	rs->stopped_ctx = ctx;
	for (size_t i = 0; i < RUNS_BUCKETS; i++)
		list_for_each (r, &rs->active[i], struct run, link)
			if (r->job.running) {
				active_judge(r, RUN_INTERRUPTED, "the daemon was stopped");
				active_step(r, RUN_EVENT_END);
			}
	check_stopped(rs);
}
