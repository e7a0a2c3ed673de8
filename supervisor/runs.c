#include "supervisor/runs.h"

#include "base/clock.h"
#include "base/digest.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/active.h"
#include "supervisor/checkout.h"
#include "supervisor/daemon.h"
#include "supervisor/eventlog.h"
#include "supervisor/harnesses.h"
#include "supervisor/hash.h"
#include "supervisor/keeper.h"
#include "supervisor/journal.h"
#include "supervisor/params.h"
#include "supervisor/plan.h"
#include "supervisor/policies.h"
#include "supervisor/runner.h"
#include "supervisor/runner_talk.h"
#include "supervisor/runner_work.h"
#include "supervisor/runs_private.h"
#include "supervisor/space.h"
#include "supervisor/store.h"
#include "supervisor/trace.h"
#include "supervisor/traces.h"
#include "supervisor/webhooks.h"

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
	runs_learn_host(rs);
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

/* ---- agents that wait ---- */

size_t runs_room_to_wait(const struct runs *rs)
{
	const struct policy_set *set = policies_set(rs->daemon->policies);
	size_t most = set ? set->config.max_warm : 0, all = set ? set->config.max_runs : 0;
	size_t running = sched_running(rs->sched);
	size_t left = all > running ? all - running : 0;
	return most < left ? most : left;
}

bool runs_any(const struct runs *rs)
{
	return sched_running(rs->sched) + rs->saving > 0;
}

/* Into what is left of the reserve, not into nothing: a log that cannot be written ends its run. */
enum { ROOM_TO_TELL = 256 << 10 };

void runs_tell_low(struct runs *rs)
{
	struct space *s = rs->daemon->space;
	if (space_left(s) < ROOM_TO_TELL)
		return;
	for (size_t i = 0; i < RUNS_BUCKETS; i++)
		list_for_each (r, &rs->active[i], struct run, link)
			if (r->job.running && r->state == RUN_STATE_RUNNING && !r->told_low) {
				r->told_low = true;
				active_emit_limit(r, "state", space_reserved(s));
			}
}

static void check_stopped(struct runs *rs)
{
	if (!rs->stopping || runs_any(rs) || !rs->stopped)
		return;
	void (*told)(void *ctx) = rs->stopped;
	rs->stopped = NULL;
	told(rs->stopped_ctx);
}

static bool active(void *ctx, const char *run)
{
	return runs_active(ctx, run) != NULL;
}

void runs_prune_journals(struct runs *rs, uint64_t most)
{
	struct daemon *d = rs->daemon;
	d->journals_bytes = journal_prune(d->journals_fd, most, active, rs);
}

uint64_t runs_journals_most(const struct runs *rs)
{
	return policies_set(rs->daemon->policies)->config.keep.journals_bytes;
}

/* A pipeline waits for people: its steps count. */
static void observe(struct stats *s, const struct run *r)
{
	int64_t now = clock_mono_us();
	struct stats_harness *h = stats_done(s, r->harness->name, r->status);
	if (r->harness->nsteps)
		return;
	if (r->slot_us) {
		stats_observe(&h->duration[r->status], now - r->slot_us);
		stats_observe(&h->queued, r->slot_us - r->queued_us);
	}
	if (r->started_us)
		stats_observe(&h->start, r->started_us - r->slot_us);
}

void runs_finished(struct run *r)
{
	struct runs *rs = r->runs;
	observe(&rs->daemon->stats, r);
	rs->saving -= r->slotless;
	sched_leave(rs->sched, &r->job, clock_mono_us());
	sessions_drop(rs->daemon->sessions, take(r->session));
	traces_over(rs->daemon->traces, r->id);
	list_remove(&r->link);
	list_append(&rs->active[hash_text("") % RUNS_BUCKETS], &r->link); /* until it is settled */
	r->id[0] = '\0';
	if (r->parent[0])
		runs_step_over(rs, r->parent);
	uint64_t most = runs_journals_most(rs);
	if (rs->daemon->journals_bytes > most)
		runs_prune_journals(rs, most / 8 * 7); /* a walk in a hundred runs */
	runs_schedule(rs);
	keeper_make_room(rs->daemon->keeper, runs_room_to_wait(rs));
	check_stopped(rs);
}

/* ---- creating ---- */

static void creation_free(struct creation *c)
{
	free(c->user);
	free(c->key);
	free(c->repo);
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
	auto_free char *repo = q->repo ? repo_write(q->repo) : NULL;
	if (repo)
		digest_add(d, repo, strlen(repo) + 1); /* with NUL, which no prompt has */
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
	(void)str_copy(ret->status, sizeof(ret->status), r->slot_us ? "running" : "queued");
	ret->from_seq = r->from_seq;
}

static void discard(struct run *r)
{
	sched_leave(r->runs->sched, &r->job, clock_mono_us());
	sessions_drop(r->d->sessions, take(r->session));
	active_free(r);
}

static void follow(struct creation *c)
{
	const struct run *r = c->run;
	struct store_delivery x = {.run = r->id,
	        .session = r->session->id,
	        .user = r->session->user,
	        .goal = r->session->goal,
	        .harness = r->harness->name,
	        .seq = r->from_seq};
	for (unsigned i = 0; i < c->webhooks.n; i++) {
		x.webhook = c->webhooks.names[i];
		webhooks_follow(r->d->webhooks, &x);
	}
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
		info_of(r, &info);
		list_append(&rs->active[hash_text(r->id) % RUNS_BUCKETS], &r->link);
		follow(c);
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

static int admit(struct runs *rs, const struct run_request *q, struct harness **ret,
        struct sched_need *ret_need, struct err *e)
{
	struct limits limits;
	if (rs->daemon->draining || rs->stopping)
		return err_set(e, -ESHUTDOWN, "the daemon is about to stop: no new runs");
	if (rs->daemon->drained)
		return err_set(e, -ESHUTDOWN, "the daemon is being drained: no new runs");
	int rc = harnesses_get(rs->daemon->harnesses, q->harness, ret, e);
	if (rc < 0)
		return rc;
	rc = harness_params_check(
	        *ret, q->prompt, q->prompt_len, q->param_names, q->param_values, q->nparams, e);
	if (rc == 0)
		rc = plan_check(rs->daemon, *ret, &limits, e);
	if (rc == 0 && !(*ret)->nsteps) /* a pipeline's goes to its steps */
		rc = checkout_admit(rs->daemon->policies, *ret, q->repo, e);
	if (rc == 0)
		rc = space_check(rs->daemon->space, e);
	runs_take_limits(rs);
	if (rc == 0)
		rc = runs_steps_check(rs, *ret, q, e);
	struct sched_ask ask = {.owner = q->user};
	if (rc == 0) {
		if (!(*ret)->nsteps) /* it gives its slot back at once */
			ask.need = *ret_need = runs_need(rs, &limits);
		rc = sched_room(rs->sched, &ask, e);
	}
	if (rc == 0 && sched_waiting(rs->sched) + rs->pipelines >= LIMIT_QUEUED_RUNS)
		rc = err_set(e, -EAGAIN, "too many pipelines are there at once");
	if (rc == -ENOEXEC)
		err_wrap(e, "harness '%s'", (*ret)->name);
	if (rc < 0)
		harness_unref(take(*ret));
	return rc;
}

struct run *runs_new_run(struct runs *rs, struct harness *h, struct session *x)
{
	const struct runner_spec spec = {.runs = rs,
	        .harness = h,
	        .session = x,
	        .finished = runs_finished,
	        .paused = runs_paused,
	        .due = runs_due};
	struct run *r = runner_new(rs->daemon, &spec);
	if (h->nsteps)
		r->perform = runs_step_effects;
	r->created_ms = clock_wall_ms();
	return r;
}

void runs_submit(struct runs *rs, struct run *r, struct creation *c)
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
	webhooks_for(d->webhooks, r->harness, r->session->user, &c->webhooks);
	traces_for(d->traces, r->id, r->trace, &c->webhooks);
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
	        .pipeline = r->harness->nsteps ? r->harness->source : NULL,
	        .parent = r->parent[0] ? r->parent : NULL,
	        .step = r->step,
	        .webhooks = &c->webhooks,
	        .repo = c->repo,
	        .trace = r->trace,
	};
	c->runs = rs;
	c->run = r;
	rs->creating++;
	store_add_run(d->store, &s, &row, c->key, c->hash, created, c);
}

static int prepare(struct runs *rs, const struct run_request *q, struct run **ret, struct err *e)
{
	struct harness *h;
	struct session *x;
	struct sched_need need = {0};
	int rc = admit(rs, q, &h, &need, e);
	if (rc < 0)
		return rc;
	const char *ahead = keeper_offer(rs->daemon->keeper, h->name);
	rc = sessions_hold_fresh(rs->daemon->sessions, q->user, q->goal, ahead, &x, e);
	if (rc == 0 && ahead && strcmp(x->id, ahead) == 0)
		keeper_assign(rs->daemon->keeper, x->id);
	if (rc == 0) {
		rc = eventlog_open(rs->daemon->log, x->id, e);
		if (rc < 0)
			sessions_drop(rs->daemon->sessions, x);
	}
	if (rc < 0) {
		harness_unref(h);
		return rc;
	}
	struct run *r = runs_new_run(rs, h, x);
	id_new("run", r->id);
	r->prompt = xcalloc(1, q->prompt_len + 1);
	memcpy(r->prompt, q->prompt, q->prompt_len);
	r->prompt_len = q->prompt_len;
	r->trace = trace_take(q->traceparent, q->tracestate);
	r->params = params_settle(h, q->param_names, q->param_values, q->nparams);
	const struct sched_ask ask = {x->user, q->priority, need};
	sched_expect(rs->sched, &r->job, &ask, clock_mono_us());
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
		rc = session_owner_check(q->user, &e);
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
			rc = prepare(rs, q, &r, &e);
	}
	if (!r) {
		done(ctx, rc, NULL, &e);
		return;
	}
	struct creation *c = xnew(struct creation);
	c->user = xstrdup(q->user);
	c->key = q->idempotency_key ? xstrdup(q->idempotency_key) : NULL;
	c->repo = q->repo ? repo_write(q->repo) : NULL;
	memcpy(c->hash, hash, sizeof(c->hash));
	c->done = done;
	c->ctx = ctx;
	runs_submit(rs, r, c);
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
		sched_leave(rs->sched, &r->job, clock_mono_us());
	active_step(r, now ? RUN_EVENT_END : RUN_EVENT_CANCEL);
	if (waiting)
		runs_schedule(rs);
	return 0;
}

int runs_say(struct runs *rs, const char *id, const struct said *s, struct err *e)
{
	struct run *r = runs_active(rs, id);
	if (r)
		return r->harness->nsteps ? runs_step_say(r, s, e) : runner_talk_say(r, s, e);
	int rc = not_active(rs, id, -EBUSY, e);
	return rc < 0 ? rc : err_set(e, -EBUSY, "run %s is about to begin or to end", id);
}

int runs_keep_session(struct runs *rs, const char *id, struct session **ret, struct err *e)
{
	struct session *x;
	int rc = sessions_hold_id(rs->daemon->sessions, id, &x, e);
	if (rc < 0)
		return rc;
	if (!sched_hold(rs->sched, session_lane(x))) {
		sessions_drop(rs->daemon->sessions, x);
		return err_set(e, -EBUSY,
		        "a run or command of session %s is just starting or ending, or it is "
		        "prepared, or its files are looked at or written",
		        id);
	}
	*ret = x;
	return 0;
}

void runs_let_session(struct runs *rs, struct session *x)
{
	sched_unhold(rs->sched, session_lane(x));
	sessions_drop(rs->daemon->sessions, x);
	runs_schedule(rs);
}

/* ---- a handover ---- */

/* Where the next supervisor goes on without losing a byte or doing anything twice.  Checks and
 * copying artifacts are begun anew, and a result that waits for room on the disk cannot be waited
 * for. */
static bool can_be_left(const struct run *r)
{
	switch (r->state) {
	case RUN_STATE_QUEUED:
	case RUN_STATE_PAUSED:
	case RUN_STATE_RUNNING:
	case RUN_STATE_STOPPING:
	case RUN_STATE_KILLING:
	case RUN_STATE_DRAINING:
	case RUN_STATE_VERIFYING:
	case RUN_STATE_UNVERIFYING:
	case RUN_STATE_KEEPING:
	case RUN_STATE_DONE:
		return true;
	case RUN_STATE_COLLECTING: /* its jail is there as long as nothing else is looked for */
		return !r->checkout.jailed;
	case RUN_STATE_SEEDING: /* a checkout may take long, and is begun anew */
		return r->checkout.jailed != NULL;
	case RUN_STATE_MAKING:
	case RUN_STATE_UNMAKING:
	case RUN_STATE_STARTING:
	case RUN_STATE_RESTING:
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
	keeper_end_all(rs->daemon->keeper, "another supervisor comes");
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
	keeper_end_all(rs->daemon->keeper, "the daemon stops");
	for (size_t i = 0; i < RUNS_BUCKETS; i++)
		list_for_each (r, &rs->active[i], struct run, link)
			if (r->job.running) {
				active_judge(r, RUN_INTERRUPTED, "the daemon was stopped");
				active_step(r, RUN_EVENT_END);
			}
	check_stopped(rs);
}
