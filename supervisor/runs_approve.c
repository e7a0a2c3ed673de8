/*
 * Questions of a pipeline: may the next step begin?  As an agent's permissions,
 * with the log as their journal: what is asked and answered is in it before it
 * is acted upon, and read again after a restart (runs_steps_asked_before).
 */
#include "supervisor/runs_steps.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "drivers/emit.h"
#include "supervisor/active.h"
#include "supervisor/asks.h"
#include "supervisor/daemon.h"
#include "supervisor/harnesses.h"
#include "supervisor/params.h"
#include "supervisor/runs.h"
#include "supervisor/runs_private.h"
#include "supervisor/said.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPT_SHOWN = 64 << 10 /* of a prompt; all of it is in the step's run */ };

/* ---- waiting ---- */

static void answered(struct run *r, struct ask *q, const char *answer, const struct said *s)
{
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "permissionId", q->id);
	jw_str(&w, "callId", q->id);
	jw_str(&w, "answer", answer);
	said_by(s, &w);
	active_emit(r, EVENT_PERMISSION_ANSWERED, b.p, b.len);
	asks_drop(&r->asks, q);
	if (r->ask_timer.inflight)
		loop_cancel(r->d->loop, &r->ask_timer);
}

static void expired(struct op *op, int res, uint32_t flags);

static void wait_for(struct run *r, const struct ask *q)
{
	int64_t left_ms = (q->due_us - clock_mono_us()) / 1000 + 1; /* never too early */
	if (!r->ask_timer.inflight)
		loop_timeout(r->d->loop, &r->ask_timer, left_ms > 0 ? left_ms : 0, expired);
}

static void expired(struct op *op, int res, uint32_t flags)
{
	(void)res;
	(void)flags;
	struct run *r = container_of(op, struct run, ask_timer);
	struct ask *q = r->state == RUN_STATE_RUNNING ? asks_next_due(&r->asks) : NULL;
	if (q && (q->due_us > clock_mono_us() || r->runs->held)) {
		if (!r->runs->held)
			wait_for(r, q);
	} else if (q) {
		unsigned step = (unsigned)json_int(json_get(q->event, "input"), "step", 1);
		auto_free char *why = xasprintf("was not approved: nobody answered within %llu ms",
		        (unsigned long long)r->harness->steps[step - 1].timeout_ms);
		const struct said s = {.by_harness = true, .text = why, .len = strlen(why)};
		answered(r, q, "deny", &s);
		r->told[step - 1] |= TOLD_DENIED;
		runs_steps_deny(r, step, why);
	}
	active_settle(r);
}

void runs_steps_wait(struct run *r)
{
	const struct ask *q = asks_next_due(&r->asks);
	if (q)
		wait_for(r, q);
}

void runs_steps_give_up(struct run *r)
{
	static const char why[] = "the run ended";
	const struct said s = {.by_harness = true, .text = why, .len = strlen(why)};
	list_for_each (q, &r->asks.open, struct ask, link)
		answered(r, q, "cancelled", &s);
}

/* ---- asking ---- */

/* How long a person is waited for does not begin anew with a restart. */
static void open_question(struct run *r, unsigned step, const char *members, size_t n, int64_t ms)
{
	asks_event(&r->asks, EVENT_PERMISSION_ASKED, members, n);
	struct ask *q =
	        list_empty(&r->asks.open) ? NULL : list_entry(r->asks.open.prev, struct ask, link);
	if (!q)
		return;
	int64_t left_ms = ms + (int64_t)r->harness->steps[step - 1].timeout_ms - clock_wall_ms();
	q->asked_ms = ms;
	q->due_us = clock_mono_us() + left_ms * 1000;
}

static char *filled_prompt(const struct run *r, unsigned step, const char *params)
{
	struct params p;
	struct err e;
	size_t n;
	const char *text = r->harness->steps[step - 1].prompt;
	if (params_parse(params, &p, &e) < 0)
		return NULL;
	char *filled = params_fill(&p, text, strlen(text), &n);
	params_done(&p);
	return filled;
}

void runs_steps_ask(
        struct run *r, unsigned step, const char *params, const struct step_latest *before)
{
	const struct harness_step *s = &r->harness->steps[step - 1];
	auto_free char *id = xasprintf("step-%u", step);
	auto_free char *prompt = filled_prompt(r, step, params);
	auto_free char *title =
	        xasprintf("step %u of %zu: harness '%s'", step, r->harness->nsteps, s->harness);
	size_t n = prompt ? strlen(prompt) : 0;
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "permissionId", id);
	jw_str(&w, "callId", id);
	jw_str(&w, "name", HARNESS_PIPELINE);
	jw_str(&w, "title", title);
	jw_open(&w, "input", '{');
	jw_int(&w, "step", step);
	jw_str(&w, "harness", s->harness);
	jw_bytes(&w, "prompt", prompt ? prompt : "", n < PROMPT_SHOWN ? n : PROMPT_SHOWN);
	if (n > PROMPT_SHOWN)
		jw_int(&w, "promptBytes", (int64_t)n);
	jw_str(&w, "afterRun", before->step ? before->id : NULL);
	jw_close(&w, '}');
	jw_open(&w, "options", '[');
	jw_str(&w, NULL, "once");
	jw_str(&w, NULL, "deny");
	jw_close(&w, ']');
	r->told[step - 1] |= TOLD_ASKED;
	open_question(r, step, b.p, b.len, clock_wall_ms());
	active_emit(r, EVENT_PERMISSION_ASKED, b.p, b.len);
}

/* ---- answers ---- */

static int check_said(const struct run *r, const struct said *s, struct err *e)
{
	if (s->what == SAID_INPUT)
		return err_set(e, -EBUSY,
		        "run %s is a pipeline and hears nothing; its step that runs is %s", r->id,
		        r->child[0] ? r->child : "not there yet");
	if (r->state != RUN_STATE_RUNNING || r->judged || r->runs->held)
		return err_set(e, -EBUSY, "run %s is about to begin or to end", r->id);
	const struct ask *q = asks_find(&r->asks, s->what == SAID_REPLY, s->id);
	if (!q && asks_was(&r->asks, s->id))
		return err_set(
		        e, -EBUSY, "permission %.80s of run %s has been answered", s->id, r->id);
	if (!q)
		return err_set(
		        e, -ENOENT, "run %s has asked for no permission %.80s", r->id, s->id);
	return asks_offers(q, emit_answer_word(s->answer))
	               ? 0
	               : err_set(e, -EINVAL, "answer: a step is approved once, or denied");
}

int runs_step_say(struct run *r, const struct said *s, struct err *e)
{
	int rc = check_said(r, s, e);
	if (rc < 0)
		return rc;
	struct ask *q = asks_find(&r->asks, false, s->id);
	unsigned step = (unsigned)json_int(json_get(q->event, "input"), "step", 1);
	bool yes = s->answer == ANSWER_ONCE;
	answered(r, q, emit_answer_word(s->answer), s);
	if (r->log_lost)
		return err_set(e, -EIO, "the answer is not on the disk");
	r->told[step - 1] |= yes ? TOLD_ALLOWED : TOLD_DENIED;
	char who[NAME_MAX_LEN + 8];
	said_who(s, who, sizeof(who));
	auto_free char *how = xasprintf("was denied by %s", who);
	if (yes)
		runs_steps_look(r);
	else
		runs_steps_deny(r, step, how);
	return 0;
}

/* ---- after a restart ---- */

void runs_steps_asked_before(struct run *r, const char *type, const struct json *event)
{
	const char *id = json_str(event, "permissionId", "");
	unsigned step = strncmp(id, "step-", 5) == 0 ? (unsigned)strtoul(id + 5, NULL, 10) : 0;
	if (!step || step > r->harness->nsteps)
		return;
	if (strcmp(type, "permission.asked") == 0) {
		const char *ts = json_str(event, "ts", "");
		int64_t ms = clock_from_rfc3339(ts, strlen(ts));
		auto_buf struct buf b = EMIT_BUF;
		struct jw w = JW_INIT(&b);
		for (const struct json *m = json_first(event); m; m = json_next(m))
			jw_tree(&w, json_key(m), m);
		r->told[step - 1] |= TOLD_ASKED;
		open_question(r, step, b.p, b.len, ms > 0 ? ms : clock_wall_ms());
		return;
	}
	const char *answer = json_str(event, "answer", "");
	struct ask *q = asks_find(&r->asks, false, id);
	r->told[step - 1] |= strcmp(answer, "once") == 0   ? TOLD_ALLOWED
	                     : strcmp(answer, "deny") == 0 ? TOLD_DENIED
	                                                   : 0;
	if (q)
		asks_drop(&r->asks, q);
}
