/*
 * Theory of operation.  active_step is the only writer of `state`: it finds the
 * row, sets the state, then performs the row's effects in the order of the
 * enum.  An effect that knows its outcome at once posts the event, which is
 * taken up when the row is done.  Replies of agentboxd and of the store are
 * counted in `replies`; the run is freed when it is DONE and neither a reply nor a
 * ring operation is outstanding.
 */
#include "supervisor/active.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/eventlog.h"
#include "supervisor/journal.h"
#include "supervisor/said.h"
#include "supervisor/seed.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- verdict and events ---- */

void active_judge(struct run *r, enum run_status s, const char *text)
{
	if (r->judged)
		return;
	r->judged = true;
	r->status = s;
	r->error = text ? xstrdup(text) : NULL;
	if (!r->journal)
		return;
	/* Who cancelled it was told so: the next supervisor must not forget. */
	struct journal_state *kept = journal_state(r->journal);
	kept->status = s;
	(void)snprintf(kept->why, sizeof(kept->why), "%s", text ? text : "");
	kept->judged = 1;
}

static void lose_log(struct run *r, const struct err *e)
{
	if (r->log_lost)
		return;
	r->log_lost = true;
	log_err("r=%s: %s", r->id, e->text);
	active_judge(r, RUN_FAILED, e->text);
	active_step(r, RUN_EVENT_END);
}

/* An event larger than the log takes goes on in pieces, as raw text: nothing is lost. */
static void emit_pieces(struct run *r, enum event_type t, const char *members, size_t n)
{
	for (size_t at = 0; at < n && !r->log_lost; at += LIMIT_RAW_PIECE) {
		size_t k = n - at < LIMIT_RAW_PIECE ? n - at : LIMIT_RAW_PIECE;
		auto_buf struct buf b = BUF_INIT((size_t)8 * LIMIT_RAW_PIECE);
		struct jw w = JW_INIT(&b);
		jw_str(&w, "of", event_name(t));
		jw_int(&w, "offset", (int64_t)at);
		jw_bytes(&w, "line", members + at, k);
		struct err e;
		if (r->muted)
			r->muted--;
		else if (eventlog_append(r->d->log, r->session->id, r->id, EVENT_AGENT_RAW, b.p,
		                 b.len, &e) < 0)
			lose_log(r, &e);
	}
}

bool active_from_agent(enum event_type t)
{
	switch (t) {
	case EVENT_RUN_QUEUED:
	case EVENT_RUN_STARTED:
	case EVENT_EGRESS_DENIED:
	case EVENT_EGRESS_ALLOWED:
	case EVENT_EGRESS_GAP:
	case EVENT_LIMIT_HIT:
	case EVENT_RUN_RETRY:
	case EVENT_VERIFY_DONE:
	case EVENT_GUARDRAIL_BLOCKED:
	case EVENT_OUTPUT_GAP:
	case EVENT_LOG_GAP:
	case EVENT_RUN_DONE:
	case EVENT_COUNT:
		return false;
	case EVENT_AGENT_MESSAGE:
	case EVENT_AGENT_THINKING:
	case EVENT_TOOL_CALL:
	case EVENT_TOOL_UPDATE:
	case EVENT_TOOL_RESULT:
	case EVENT_FILE_CHANGED:
	case EVENT_PLAN_UPDATED:
	case EVENT_PERMISSION_ASKED:
	case EVENT_PERMISSION_ANSWERED:
	case EVENT_QUESTION_ASKED:
	case EVENT_QUESTION_ANSWERED:
	case EVENT_USER_MESSAGE:
	case EVENT_USAGE:
	case EVENT_AGENT_RAW:
	case EVENT_ERROR:
		return true;
	}
	return false;
}

void active_emit(struct run *r, enum event_type t, const char *members, size_t n)
{
	struct err e;
	if (r->log_lost)
		return;
	int rc;
	if (r->muted && active_from_agent(t)) {
		rc = eventlog_fits(r->d->log, r->session->id, r->id, t, members, n);
		r->muted -= rc == 0;
	} else {
		rc = eventlog_append(r->d->log, r->session->id, r->id, t, members, n, &e);
	}
	if (rc == -ENOBUFS)
		emit_pieces(r, t, members, n);
	else if (rc < 0)
		lose_log(r, &e);
}

static bool told_before(const struct run *r, const char *limit)
{
	size_t n = strlen(limit);
	const char *at = r->adopted ? r->adopted->limits.p : NULL;
	for (; at && *at; at = strchr(at, '\n') + 1)
		if (strncmp(at, limit, n) == 0 && at[n] == '\n')
			return true;
	return false;
}

void active_emit_limit(struct run *r, const char *limit, uint64_t value)
{
	if (told_before(r, limit))
		return;
	auto_buf struct buf b = BUF_INIT(256);
	struct jw w = JW_INIT(&b);
	jw_str(&w, "limit", limit);
	jw_int(&w, "value", (int64_t)value);
	active_emit(r, EVENT_LIMIT_HIT, b.p, b.len);
}

void active_emit_disk(struct run *r, uint64_t value, uint64_t left)
{
	if (told_before(r, "disk"))
		return;
	auto_buf struct buf b = BUF_INIT(256);
	struct jw w = JW_INIT(&b);
	jw_str(&w, "limit", "disk");
	jw_int(&w, "value", (int64_t)value);
	jw_int(&w, "left", (int64_t)left);
	active_emit(r, EVENT_LIMIT_HIT, b.p, b.len);
}

void active_emit_budget(struct run *r, const char *limit, const char *scope, double value)
{
	if (told_before(r, limit))
		return;
	auto_buf struct buf b = BUF_INIT(256);
	struct jw w = JW_INIT(&b);
	jw_str(&w, "limit", limit);
	jw_str(&w, "scope", scope);
	jw_num(&w, "value", value);
	active_emit(r, EVENT_LIMIT_HIT, b.p, b.len);
}

void active_fail(struct run *r, const struct err *e)
{
	active_judge(r, RUN_FAILED, e->text);
	active_step(r, RUN_EVENT_FAILED);
}

/* ---- timers ---- */

static void timer_fired(struct op *op, int res, uint32_t flags)
{
	(void)res;
	(void)flags;
	struct run *r = container_of(op, struct run, timer);
	if (r->state != r->timer_state || r->state == RUN_STATE_DONE) {
		active_settle(r);
		return;
	}
	/* Cancelled to be set anew, or the timer of an earlier state. */
	int64_t left = r->timer_due_ms - clock_mono_ms();
	if (left > 0)
		loop_timeout(r->d->loop, &r->timer, left, timer_fired);
	else
		r->timer_fn(r);
}

void active_timer(struct run *r, int64_t ms, void (*fn)(struct run *r))
{
	r->timer_state = r->state;
	r->timer_due_ms = clock_mono_ms() + ms;
	r->timer_fn = fn;
	if (r->timer.inflight)
		loop_cancel(r->d->loop, &r->timer); /* comes back, and is set anew there */
	else
		loop_timeout(r->d->loop, &r->timer, ms, timer_fired);
}

/* ---- the machine ---- */

static void step_one(struct run *r, enum run_event v)
{
	const struct run_rule *rule = run_rule(r->state, v);
	if (!rule) {
		log_debug("r=%s: %s does not count in %s", r->id, run_event_name(v),
		        run_state_name(r->state));
		return;
	}
	log_debug("r=%s: %s -> %s (%s)", r->id, run_state_name(r->state), run_state_name(rule->to),
	        run_event_name(v));
	r->state = rule->to;
	for (int i = 0; i < RUN_EFFECT_COUNT; i++)
		if (rule->effects & RUN_EFFECT_BIT(i))
			r->perform[i](r);
}

void active_step(struct run *r, enum run_event v)
{
	assert(r->nevents < ARRAY_LEN(r->events));
	r->events[r->nevents++] = v;
	if (r->stepping)
		return;
	r->stepping = true;
	while (r->nevents) {
		enum run_event first = r->events[0];
		r->nevents--;
		memmove(r->events, r->events + 1, r->nevents * sizeof(*r->events));
		step_one(r, first);
	}
	r->stepping = false;
}

/* ---- life ---- */

static void emit_from_driver(
        struct event_sink *sink, enum event_type t, const char *members, size_t n)
{
	struct run *r = container_of(sink, struct run, sink);
	auto_buf struct buf told = BUF_INIT(LIMIT_EVENT);
	if (r->saying && (t == EVENT_PERMISSION_ANSWERED || t == EVENT_QUESTION_ANSWERED))
		said_retell(r->saying, members, n, &told);
	asks_event(&r->asks, t, members, n);
	active_emit(r, t, told.len ? told.p : members, told.len ? told.len : n);
}

struct run *active_new(void (*const *perform)(struct run *r))
{
	struct run *r = xnew(struct run);
	list_init(&r->link);
	r->perform = perform;
	r->state = RUN_STATE_QUEUED;
	r->exec_fd = -1;
	for (int i = 0; i < 3; i++)
		r->fds[i] = -1;
	r->sink.emit = emit_from_driver;
	asks_init(&r->asks);
	r->to_stdin = (struct buf)BUF_INIT(2 * (size_t)LIMIT_PROMPT);
	r->stderr_tail = (struct buf)BUF_INIT(2 * ACTIVE_STDERR_TAIL + 2);
	r->result = (struct buf)BUF_INIT(LIMIT_EVENT - 4096);
	return r;
}

static bool idle(const struct run *r)
{
	return !r->replies && !r->deadline.inflight && !r->ask_timer.inflight &&
	       !r->timer.inflight && !r->stepping && !r->collecting;
}

void active_settle(struct run *r)
{
	if (r->state == RUN_STATE_DONE && idle(r))
		active_free(r);
}

void active_free(struct run *r)
{
	list_remove(&r->link);
	pump_close(r->pump);
	seed_close(r->seed);
	journal_close(r->journal);
	if (r->adopted)
		buf_done(&r->adopted->limits);
	free(r->adopted);
	plan_done(&r->plan);
	asks_done(&r->asks);
	if (r->has_outcome)
		driver_outcome_done(&r->outcome);
	artifacts_result_done(&r->kept);
	egress_totals_done(&r->egress);
	fd_close(r->exec_fd);
	for (int i = 0; i < 3; i++)
		fd_close(r->fds[i]);
	harness_unref(r->harness);
	buf_done(&r->to_stdin);
	buf_done(&r->stderr_tail);
	buf_done(&r->result);
	free(r->prompt);
	free(r->params);
	free(r->filled);
	free(r->system_prompt);
	free(r->error);
	free(r);
}
