/*
 * Theory of operation.  Questions are events of the driver, kept in run.asks.
 * When the lines that brought them are told, each gets its time (journaled as
 * well: a restart does not make it longer) and waits; nothing else waits with
 * it: the agent's other output flows, and the wall clock of the run goes on.
 * An answer is found to be possible, journaled, given to the driver, whose bytes go
 * to the agent.  Should this supervisor die behind the journal, the next one
 * repeats all that follows.
 */
#include "supervisor/runner_talk.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "drivers/emit.h"
#include "supervisor/active.h"
#include "supervisor/guard.h"
#include "supervisor/daemon.h"
#include "supervisor/harnesses.h"
#include "supervisor/hub.h"
#include "supervisor/said.h"

#include <stdio.h>
#include <string.h>

enum {
	/* JSON escapes a byte by six, and a driver adds its envelope. */
	SAID_ROOM = 6 * SAID_TEXT_MAX + (64 << 10),
	/* A no, with its reason.  People leave room for one to each question that may be open: an
	 * agent that reads nothing for a while hears it afterwards. */
	NO_ROOM = 16 << 10,
	RESERVED = ASKS_OPEN_MAX * NO_ROOM,
};

/* ---- its stdin ---- */

void runner_talk_feed(struct run *r, bool eof)
{
	/* A call that is refused is not answered with yes, where the agent has asked for it. */
	if (r->judged && r->status == RUN_BLOCKED)
		buf_clear(&r->to_stdin);
	if (r->pump && (r->to_stdin.len || eof)) {
		int rc = pump_write(r->pump, r->to_stdin.p, r->to_stdin.len, eof);
		if (rc < 0) {
			active_judge(r, RUN_FAILED, "the agent does not read its input");
			active_step(r, RUN_EVENT_END);
		}
	}
	buf_clear(&r->to_stdin);
}

/* Without a journal it runs as well, and ends with this supervisor. */
void runner_talk_keep(struct run *r, enum journal_type t, const void *p, size_t n)
{
	struct err e;
	if (r->journal && !r->replaying && journal_put(r->journal, t, p, n, &e) < 0)
		log_warn("r=%s: %s; it ends with this supervisor", r->id, e.text);
	if (!r->replaying)
		hub_notify(r->d->hub, r->session->id); /* who reads the raw log */
}

/* ---- saying ---- */

static void emit_message(struct run *r, const struct said *s)
{
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_bytes(&w, "text", s->text, s->len);
	said_by(s, &w);
	(void)emit_members(&r->sink, EVENT_USER_MESSAGE, &b); /* fits: SAID_ROOM */
}

static bool tell(struct run *r, const struct said *s)
{
	const struct driver *d = r->plan.driver;
	bool taken = false;
	r->saying = s;
	journal_driving(r->journal, true);
	switch (s->what) {
	case SAID_ANSWER:
		taken = d->answer && d->answer(r->plan.run, s->id, s->answer, &r->to_stdin);
		break;
	case SAID_REPLY:
		taken = d->reply && d->reply(r->plan.run, s->id, s->by_harness ? NULL : s->text,
		                            s->by_harness ? 0 : s->len, &r->to_stdin);
		break;
	case SAID_INPUT:
		taken = d->input && d->input(r->plan.run, s->text, s->len, &r->to_stdin);
		if (taken)
			emit_message(r, s);
		break;
	}
	journal_driving(r->journal, false);
	r->saying = NULL;
	runner_talk_feed(r, false);
	return taken;
}

static int not_open(const struct run *r, const char *kind, const char *id, struct err *e)
{
	if (asks_was(&r->asks, id))
		return err_set(e, -EBUSY, "%s %.80s of run %s has been answered", kind, id, r->id);
	return err_set(e, -ENOENT, "run %s has asked for no %s %.80s", r->id, kind, id);
}

static int check_answer(const struct run *r, const struct said *s, struct err *e)
{
	bool reply = s->what == SAID_REPLY;
	const struct ask *q = asks_find(&r->asks, reply, s->id);
	if (!q)
		return not_open(r, reply ? "question" : "permission", s->id, e);
	if (!reply && !s->by_harness && !asks_offers(q, emit_answer_word(s->answer)))
		return err_set(e, -EINVAL, "answer: '%s' is not among what the agent offers",
		        emit_answer_word(s->answer));
	return 0;
}

static size_t room_for(const struct said *s)
{
	bool no = s->by_harness && (s->what == SAID_REPLY || s->answer == ANSWER_DENY);
	return no ? NO_ROOM : SAID_ROOM + RESERVED;
}

static int check(const struct run *r, const struct said *s, struct err *e)
{
	if (r->state < RUN_STATE_RUNNING)
		return err_set(e, -EBUSY, "the agent of run %s has not started yet", r->id);
	if (r->state > RUN_STATE_RUNNING || r->exited || r->judged)
		return err_set(e, -EBUSY, "run %s is about to end", r->id);
	if (s->what == SAID_INPUT && !r->plan.driver->input)
		return err_set(e, -EBUSY,
		        "agent '%s' hears nothing while it works; another run of its session "
		        "goes on where this one ends",
		        r->plan.backend);
	int rc = s->what == SAID_INPUT ? 0 : check_answer(r, s, e);
	if (rc < 0)
		return rc;
	rc = pump_room(r->pump, room_for(s));
	if (rc == -EPIPE)
		return err_set(e, -EBUSY, "the agent of run %s reads nothing more", r->id);
	return rc < 0 ? err_set(e, -EAGAIN,
	                        "the agent of run %s has not read what it was told before", r->id)
	              : 0;
}

static int check_text(const struct run *r, const struct said *s, struct err *e)
{
	if (s->what == SAID_ANSWER || s->by_harness)
		return 0;
	struct guard *g = guard_new(r->harness, GUARD_INPUT);
	int rc = guard_denies(g, s->text, s->len)
	                 ? err_set(e, -EACCES, "guardrails of harness '%s': %s denies this text",
	                           r->harness->name, guard_rule(g))
	                 : 0;
	guard_free(g);
	return rc;
}

int runner_talk_say(struct run *r, const struct said *s, struct err *e)
{
	pump_settle(r->pump); /* what is noted first is told first: so it is taken up again */
	int rc = check(r, s, e);
	if (rc == 0)
		rc = check_text(r, s, e);
	if (rc < 0)
		return rc;
	auto_buf struct buf b = BUF_INIT(SAID_TEXT_MAX + 4096);
	said_pack(s, &b);
	if (b.failed)
		return err_set(e, -E2BIG, "text: longer than %d bytes", SAID_TEXT_MAX);
	runner_talk_keep(r, JOURNAL_SAID, b.p, b.len);
	return tell(r, s)
	               ? 0
	               : err_set(e, -EBUSY,
	                         "the agent of run %s is done, or does not listen any more", r->id);
}

int runner_talk_say_again(struct run *r, const char *p, size_t n)
{
	struct said s;
	struct err e;
	int rc = said_unpack(p, n, &s, &e);
	if (rc == 0)
		(void)tell(r, &s); /* as it went before */
	return rc;
}

/* ---- waiting ---- */

static void stamp(struct run *r, struct ask *q)
{
	q->asked_ms = clock_wall_ms();
	q->due_us = clock_mono_us() + (int64_t)r->harness->ask_timeout_ms * 1000;
	const struct journal_asked x = {q->asked_ms, q->due_us, q->question};
	auto_buf struct buf b = BUF_INIT(sizeof(x) + LIMIT_LINE);
	(void)buf_put(&b, (const char *)&x, sizeof(x)); /* fits: the id is of a line */
	(void)buf_puts(&b, q->id);
	runner_talk_keep(r, JOURNAL_ASKED, b.p, b.len);
}

int runner_talk_asked_again(struct run *r, const char *p, size_t n)
{
	struct journal_asked x;
	if (n < sizeof(x))
		return -EBADMSG;
	memcpy(&x, p, sizeof(x));
	auto_free char *id = xstrndup(p + sizeof(x), n - sizeof(x));
	struct ask *q = asks_find(&r->asks, x.question, id);
	if (q) {
		q->asked_ms = x.asked_ms;
		q->due_us = x.due_us;
	}
	return 0;
}

/* It waits no more, and whoever follows the run is told so; the agent is not. */
static void give_up(struct run *r, struct ask *q, const char *reason)
{
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_str(&w, q->question ? "questionId" : "permissionId", q->id);
	jw_str(&w, "callId", json_str(q->event, "callId", NULL));
	jw_str(&w, "answer", "cancelled");
	jw_str(&w, "by", "harness");
	jw_str(&w, "reason", reason);
	active_emit(
	        r, q->question ? EVENT_QUESTION_ANSWERED : EVENT_PERMISSION_ANSWERED, b.p, b.len);
	asks_drop(&r->asks, q);
}

/* The harness answers in place of a person; with no where a yes is more than the agent has room
 * for.  Returns the question if it is open still: the agent reads nothing more. */
static struct ask *answer_by_harness(
        struct run *r, struct ask *q, enum driver_answer answer, const char *reason)
{
	struct err e;
	if (answer != ANSWER_DENY && pump_room(r->pump, SAID_ROOM + RESERVED) < 0) {
		answer = ANSWER_DENY;
		reason = "the agent has not read what it was told before";
	}
	auto_free char *id = xstrdup(q->id);
	bool question = q->question;
	const struct said s = {
	        .what = question ? SAID_REPLY : SAID_ANSWER,
	        .answer = answer,
	        .by_harness = true,
	        .id = id,
	        .text = reason,
	        .len = strlen(reason),
	};
	if (runner_talk_say(r, &s, &e) < 0)
		log_warn("r=%s: %s", r->id, e.text);
	return asks_find(&r->asks, question, id);
}

static void deny_surplus(struct run *r)
{
	static const char why[] = "too many or too long questions are open";
	while (asks_crowded(&r->asks) && r->state == RUN_STATE_RUNNING) {
		struct ask *last = list_entry(r->asks.open.prev, struct ask, link);
		last = answer_by_harness(r, last, ANSWER_DENY, why);
		if (last)
			give_up(r, last, why);
	}
}

static void expire(struct run *r)
{
	char reason[64];
	(void)snprintf(reason, sizeof(reason), "nobody answered within %llu ms",
	        (unsigned long long)r->harness->ask_timeout_ms);
	enum driver_answer answer =
	        r->harness->ask_default == HARNESS_ASK_ONCE ? ANSWER_ONCE : ANSWER_DENY;
	struct ask *q;
	while (r->state == RUN_STATE_RUNNING && (q = asks_next_due(&r->asks)) &&
	        q->due_us <= clock_mono_us()) {
		q = answer_by_harness(r, q, answer, reason);
		if (q)
			q->due_us = 0; /* it ends with the run */
	}
}

static void ask_timer_fired(struct op *op, int res, uint32_t flags)
{
	(void)res;
	(void)flags;
	struct run *r = container_of(op, struct run, ask_timer);
	expire(r);
	runner_talk_mind(r);
	active_settle(r);
}

void runner_talk_mind(struct run *r)
{
	if (r->replaying || list_empty(&r->asks.open))
		return;
	list_for_each (q, &r->asks.open, struct ask, link)
		if (!q->asked_ms)
			stamp(r, q);
	deny_surplus(r);
	const struct ask *next = asks_next_due(&r->asks);
	if (!next || r->ask_timer.inflight || r->state != RUN_STATE_RUNNING)
		return;
	int64_t left_ms = (next->due_us - clock_mono_us()) / 1000 + 1; /* never too early */
	loop_timeout(r->d->loop, &r->ask_timer, left_ms > 0 ? left_ms : 0, ask_timer_fired);
}

void runner_talk_end(struct run *r)
{
	list_for_each (q, &r->asks.open, struct ask, link)
		give_up(r, q, "the run ended");
}
