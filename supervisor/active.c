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
#include "base/scan.h"
#include "supervisor/daemon.h"
#include "supervisor/eventlog.h"
#include "supervisor/guard.h"
#include "supervisor/journal.h"
#include "supervisor/keeper.h"
#include "supervisor/said.h"
#include "supervisor/seed.h"
#include "supervisor/veiled.h"
#include "supervisor/verify.h"

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
	r->error = text ? veiled_text(r->veiled, text, strlen(text)) : NULL;
	text = r->error;
	if (!r->journal)
		return;
	/* Who cancelled it was told so: the next supervisor must not forget. */
	struct journal_state *kept = journal_state(r->journal);
	kept->status = s;
	(void)snprintf(kept->why, sizeof(kept->why), "%s", text ? text : "");
	kept->judged = 1;
}

void active_block(struct run *r, bool output, const char *rule)
{
	if (r->rule[0])
		return;
	(void)snprintf(r->rule, sizeof(r->rule), "%s", rule);
	r->withheld = output;
	auto_buf struct buf b = BUF_INIT(256);
	struct jw w = JW_INIT(&b);
	jw_str(&w, "stage", output ? "output" : "input");
	jw_str(&w, "rule", rule);
	if (!r->rule_told)
		active_emit(r, EVENT_GUARDRAIL_BLOCKED, b.p, b.len);
	auto_free char *why =
	        xasprintf("guardrails: %s denies its %s", rule, output ? "output" : "prompt");
	active_judge(r, RUN_BLOCKED, why);
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
	case EVENT_STEP_STARTED:
	case EVENT_STEP_DONE:
	case EVENT_SESSION_RESUMED:
	case EVENT_SESSION_EVICTED:
	case EVENT_ARTIFACTS_UPLOADED:
	case EVENT_REPO_CLONED:
	case EVENT_REPO_CHANGES:
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

static bool emit_as_it_is(void *ctx, enum event_type t, const char *members, size_t n)
{
	struct run *r = ctx;
	struct err e;
	if (r->log_lost)
		return true;
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
	return true;
}

void active_emit(struct run *r, enum event_type t, const char *members, size_t n)
{
	auto_buf struct buf copy = BUF_INIT(n + 1);
	if (r->veiled && n) {
		(void)buf_put(&copy, members, n); /* fits */
		(void)veil_json(veiled_veil(r->veiled), copy.p, copy.len);
		members = copy.p;
	}
	(void)emit_as_it_is(r, t, members, n);
}

void active_veil(struct run *r, const struct veil *v)
{
	veiled_free(r->veiled);
	r->veiled = veiled_new(v);
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

void active_hit_turns(struct run *r)
{
	r->out_of_turns = true;
	active_emit_limit(r, "turns", r->harness->max_turns);
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

/* ---- its time ---- */

static void time_over(struct run *r)
{
	bool all = r->over_us && r->deadline_us >= r->over_us;
	uint64_t ms = all ? r->harness->total_ms : r->plan.timeout_ms;
	char text[96];
	(void)snprintf(text, sizeof(text), "not done after %llu ms%s", (unsigned long long)ms,
	        all ? " in all (limits.totalMs)" : "");
	r->last_attempt |= all;
	active_emit_limit(r, "wall", ms);
	active_judge(r, RUN_TIMEOUT, text);
	active_step(r, RUN_EVENT_END);
}

static void deadline_fired(struct op *op, int res, uint32_t flags)
{
	(void)res; /* it may have been cancelled to be set anew */
	(void)flags;
	struct run *r = container_of(op, struct run, deadline);
	int64_t left_us = r->deadline_us - clock_mono_us();
	if (r->timed && left_us > 0) {
		loop_timeout(r->d->loop, &r->deadline, (left_us + 999) / 1000, deadline_fired);
		return;
	}
	if (r->timed && r->state < RUN_STATE_KILLING)
		time_over(r);
	r->timed = false;
	active_settle(r);
}

void active_timed(struct run *r, int64_t due_us)
{
	int64_t left_ms = (due_us - clock_mono_us()) / 1000;
	r->deadline_us = due_us;
	r->timed = true;
	if (r->deadline.inflight)
		loop_cancel(r->d->loop, &r->deadline); /* comes back, and is set anew there */
	else
		loop_timeout(r->d->loop, &r->deadline, left_ms > 0 ? left_ms : 0, deadline_fired);
}

void active_untimed(struct run *r)
{
	r->timed = false;
	if (r->deadline.inflight)
		loop_cancel(r->d->loop, &r->deadline);
}

int64_t active_over(const struct run *r)
{
	uint64_t ms = r->harness->total_ms;
	return ms ? r->slot_us + (int64_t)ms * 1000 : 0;
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

static void limit_turns(struct run *r, enum event_type t, const char *members, size_t n)
{
	int64_t turns = r->plan.driver->turns ? r->plan.driver->turns(r->plan.run)
	                                      : enforce_turn(&r->enforce, t, members, n);
	if (r->judged || turns <= (int64_t)r->harness->max_turns)
		return;
	auto_free char *why =
	        xasprintf("it has had the %u turns of limits.maxTurns and began another",
	                r->harness->max_turns);
	active_hit_turns(r);
	active_judge(r, RUN_FAILED, why);
	active_step(r, RUN_EVENT_END);
}

static void block(struct run *r, const char *why)
{
	auto_buf struct buf b = BUF_INIT(4096);
	struct jw w = JW_INIT(&b);
	jw_str(&w, "message", why);
	jw_str(&w, "code", "tool_refused");
	jw_bool(&w, "retryable", false);
	active_emit(r, EVENT_ERROR, b.p, b.len);
	active_judge(r, RUN_BLOCKED, why);
	active_step(r, RUN_EVENT_END);
}

/* What the agent could not be told. */
static void enforce(struct run *r, enum event_type t, const char *members, size_t n)
{
	uint32_t enforced = r->plan.enforced;
	if (ability_in(enforced, ABILITY_MAX_TURNS))
		limit_turns(r, t, members, n);
	if (t != EVENT_TOOL_CALL || r->judged)
		return;
	auto_free char *why = enforce_call(r->harness, enforced, members, n);
	if (why)
		block(r, why);
}

static struct guard *voice(struct run *r, enum active_voice which)
{
	if (!r->voices[which])
		r->voices[which] = guard_new(r->harness, GUARD_TEXT);
	return r->voices[which];
}

/* What the agent says, by the member that may come in pieces. */
static enum active_voice voice_of(enum event_type t, const char **ret_name)
{
	bool whole = t == EVENT_ERROR || t == EVENT_PLAN_UPDATED || t == EVENT_QUESTION_ASKED;
	*ret_name = whole ? NULL : t == EVENT_AGENT_RAW ? "line" : "text";
	return whole                       ? VOICE_WHOLE
	       : t == EVENT_AGENT_MESSAGE  ? VOICE_MESSAGE
	       : t == EVENT_AGENT_THINKING ? VOICE_THINKING
	       : t == EVENT_AGENT_RAW      ? VOICE_RAW
	                                   : VOICES;
}

/* Each text but the member of that name. */
static bool texts_denied(struct guard *g, const struct json *of, const char *but)
{
	bool no = false;
	for (const struct json *m = json_first(of); m && !no; m = json_next(m)) {
		const char *text = json_text(m), *key = json_key(m);
		if (but && key && strcmp(key, but) == 0)
			continue;
		no = text ? guard_denies(g, text, strlen(text)) : texts_denied(g, m, NULL);
	}
	return no;
}

static bool piece_denied(struct guard *g, enum active_voice which, const struct buf *text)
{
	const char *p = text->p ? text->p : "";
	if (which == VOICE_WHOLE)
		return guard_denies(g, p, text->len);
	/* lines come without their newline */
	return guard_feed(g, p, text->len) || (which == VOICE_RAW && guard_feed(g, "\n", 1));
}

/* By which rule, or NULL. */
static const char *denied_by(
        struct run *r, enum active_voice which, const char *name, const char *members, size_t n)
{
	struct guard *whole = voice(r, VOICE_WHOLE), *g = whole;
	if (!whole)
		return NULL;
	auto_json struct json *event = json_parse_members(members, n);
	auto_buf struct buf text = BUF_INIT(LIMIT_EVENT);
	if (!event || (name && !scan_members_text(members, n, name, &text)))
		return "unchecked";
	if (texts_denied(whole, event, name))
		return guard_rule(whole);
	if (which == VOICE_RAW || json_bool(event, "delta", false))
		g = voice(r, which);
	else
		which = VOICE_WHOLE;
	return name && piece_denied(g, which, &text) ? guard_rule(g) : NULL;
}

/* Is it something that the agent says, and that must not be said?  Then nothing more it says is. */
static bool denied(struct run *r, enum event_type t, const char *members, size_t n)
{
	const char *name;
	enum active_voice which = voice_of(t, &name);
	if (which == VOICES || !r->harness->nguard_output)
		return false;
	if (r->withheld)
		return true;
	const char *rule = denied_by(r, which, name, members, n);
	if (rule) {
		active_block(r, true, rule);
		active_step(r, RUN_EVENT_END);
	}
	return rule;
}

static bool tell(void *ctx, enum event_type t, const char *members, size_t n)
{
	struct run *r = ctx;
	auto_buf struct buf told = BUF_INIT(LIMIT_EVENT);
	if (r->saying && (t == EVENT_PERMISSION_ANSWERED || t == EVENT_QUESTION_ANSWERED))
		said_retell(r->saying, members, n, &told);
	if (denied(r, t, members, n))
		return false;
	asks_event(&r->asks, t, members, n);
	return emit_as_it_is(r, t, told.len ? told.p : members, told.len ? told.len : n);
}

static void emit_from_driver(
        struct event_sink *sink, enum event_type t, const char *members, size_t n)
{
	struct run *r = container_of(sink, struct run, sink);
	if (veiled_event(r->veiled, t, members, n, tell, r) && r->plan.enforced)
		enforce(r, t, members, n);
}

void active_told(struct run *r)
{
	(void)veiled_end(r->veiled, tell, r);
}

struct run *active_new(void (*const *perform)(struct run *r))
{
	struct run *r = xnew(struct run);
	list_init(&r->link);
	r->perform = perform;
	r->state = RUN_STATE_QUEUED;
	r->attempt = 1;
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
	verify_free(r->verify);
	checkout_done(&r->checkout);
	for (int i = 0; i < VOICES; i++)
		guard_free(r->voices[i]);
	guard_free(r->looking);
	journal_close(r->journal);
	if (r->adopted)
		buf_done(&r->adopted->limits);
	free(r->adopted);
	plan_done(&r->plan);
	resume_done(&r->resume);
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
	keeper_end_claimed(r->waited);
	veiled_free(r->veiled);
	free(r->live);
	free(r->rests);
	free(r->prompt);
	free(r->params);
	free(r->trace);
	free(r->filled);
	free(r->system_prompt);
	free(r->error);
	free(r->steps);
	free(r);
}
