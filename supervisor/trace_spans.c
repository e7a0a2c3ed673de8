#include "supervisor/trace_spans.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/scan.h"
#include "supervisor/logline.h"
#include "supervisor/store.h"
#include "supervisor/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	NAME_ROOM = 80,
	TOOL_ROOM = 64, /* an agent's word */
	ID_ROOM = 256,  /* ids of calls: what is longer is told apart by its beginning */
	NONE = -1,
	ROOT = 0,
	STATUS_ERROR = 2, /* of OTLP */
	KIND_INTERNAL = 1,
	KIND_SERVER = 2,
};

struct one {
	int parent; /* index; NONE: the client's */
	int64_t from_ms, to_ms;
	bool open;
	bool failed;
	uint64_t key;          /* of what it waits for: a call, a question; 0: nothing */
	char name[NAME_ROOM];  /* as it is told */
	const char *attribute; /* static: name of the one it has, or NULL */
	char value[TOOL_ROOM];
	char why[TOOL_ROOM]; /* of a failure */
	unsigned step;       /* of a pipeline, from 1: its id is the one that the step knows */
};

struct spans {
	char run[ID_MAX], session[ID_MAX], harness[NAME_MAX_LEN], status[16];
	char pipeline[ID_MAX];
	char *text; /* owned: the kept trace, or NULL */
	struct trace trace;
	struct json *result; /* owned; NULL: none that can be read */
	int64_t created_ms, started_ms, ended_ms;
	struct one *all; /* owned */
	unsigned n, dropped;
	int attempt, agent; /* indices of those that are open, or NONE */
	unsigned attempts;
	int64_t due_ms; /* when the next attempt begins */
	char backend[NAME_MAX_LEN], model[TOOL_ROOM], policy[NAME_MAX_LEN];
};

/* ---- one span ---- */

static int add(struct spans *s, int parent, int64_t from_ms, const char *name)
{
	if (s->n == TRACE_SPANS) {
		s->dropped++;
		return NONE;
	}
	struct one *o = &s->all[s->n];
	*o = (struct one){.parent = parent, .from_ms = from_ms, .to_ms = from_ms, .open = true};
	(void)snprintf(o->name, sizeof(o->name), "%s", name);
	return (int)s->n++;
}

static void end(struct spans *s, int at, int64_t ms)
{
	if (at == NONE || !s->all[at].open)
		return;
	s->all[at].open = false;
	s->all[at].to_ms = ms;
}

static void fail(struct spans *s, int at, const char *why)
{
	if (at == NONE)
		return;
	s->all[at].failed = true;
	(void)snprintf(s->all[at].why, sizeof(s->all[at].why), "%s", why);
}

/* All at once: of a time when it did not happen before our eyes. */
static int add_whole(struct spans *s, int parent, int64_t from_ms, int64_t to_ms, const char *name)
{
	int at = add(s, parent, from_ms, name);
	end(s, at, to_ms);
	return at;
}

/* ---- members of a line ---- */

struct line {
	struct span object;
	int64_t at_ms;
};

/* Text of a member: what does not fit is cut, what is no printable ASCII is a point. */
static bool text(const struct line *l, const char *name, char *ret, size_t room)
{
	struct span v;
	ret[0] = '\0';
	if (!scan_member(l->object, name, &v) || v.n < 2 || v.p[0] != '"')
		return false;
	size_t n = v.n - 2 < room - 1 ? v.n - 2 : room - 1;
	for (size_t i = 0; i < n; i++)
		ret[i] = v.p[i + 1] > 0x20 && v.p[i + 1] < 0x7f && v.p[i + 1] != '"' ? v.p[i + 1]
		                                                                     : '.';
	ret[n] = '\0';
	return n > 0;
}

static uint64_t number(const struct line *l, const char *name)
{
	struct span v;
	uint64_t n = 0;
	return scan_member(l->object, name, &v) && scan_number(v, &n) ? n : 0;
}

static bool is_true(const struct line *l, const char *name)
{
	struct span v;
	return scan_member(l->object, name, &v) && v.n == 4 && memcmp(v.p, "true", 4) == 0;
}

/* Of an id, FNV-1a; never 0. */
static uint64_t key(const struct line *l, const char *name)
{
	struct span v;
	uint64_t h = 14695981039346656037u;
	if (!scan_member(l->object, name, &v))
		return 0;
	for (size_t i = 0; i < v.n && i < ID_ROOM; i++)
		h = (h ^ (unsigned char)v.p[i]) * 1099511628211u;
	return h ? h : 1;
}

static int waiting(const struct spans *s, uint64_t k, bool open)
{
	for (int i = (int)s->n - 1; k && i > ROOT; i--)
		if (s->all[i].key == k && (s->all[i].open || !open))
			return i;
	return NONE;
}

/* ---- what happens ---- */

/* Its calls and questions, too, which may have been left. */
static void end_agent(struct spans *s, int64_t ms)
{
	for (unsigned i = 1; i < s->n; i++)
		if (s->all[i].key)
			end(s, (int)i, ms);
	end(s, s->agent, ms);
	s->agent = NONE;
}

static void begin_attempt(struct spans *s, unsigned n)
{
	s->attempt = add(s, ROOT, s->due_ms, "attempt");
	s->attempts = n;
	if (s->attempt == NONE)
		return;
	struct one *o = &s->all[s->attempt];
	o->attribute = "agentbox.attempt";
	(void)snprintf(o->value, sizeof(o->value), "%u", n);
}

static void started(struct spans *s, const struct line *l)
{
	unsigned n = (unsigned)number(l, "attempt");
	char agent[NAME_MAX_LEN];
	if (text(l, "backend", agent, sizeof(agent)))
		memcpy(s->backend, agent, sizeof(agent));
	(void)text(l, "model", s->model, sizeof(s->model));
	(void)text(l, "policy", s->policy, sizeof(s->policy));
	if (number(l, "steps")) /* a pipeline: its steps are all there is */
		return;
	int64_t before = s->due_ms;
	if (s->attempt == NONE || n != s->attempts)
		begin_attempt(s, n ? n : 1);
	else /* its agent began anew */
		before = s->agent == NONE ? l->at_ms : s->all[s->agent].from_ms;
	end_agent(s, l->at_ms);
	add_whole(s, s->attempt, before, l->at_ms, "start jail");
	s->agent = add(s, s->attempt, l->at_ms, "agent");
}

static void retried(struct spans *s, const struct line *l)
{
	char why[TOOL_ROOM];
	int64_t pause = (int64_t)number(l, "delayMs");
	bool counts = text(l, "status", why, sizeof(why));
	end_agent(s, l->at_ms);
	if (counts)
		fail(s, s->attempt, why);
	end(s, s->attempt, l->at_ms);
	s->attempt = NONE;
	s->due_ms = l->at_ms + pause;
	if (pause)
		add_whole(s, ROOT, l->at_ms, s->due_ms, "pause");
}

static void called(struct spans *s, const struct line *l)
{
	char tool[TOOL_ROOM], name[NAME_ROOM];
	int parent = waiting(s, key(l, "parentCallId"), false);
	(void)text(l, "name", tool, sizeof(tool));
	(void)snprintf(name, sizeof(name), "tool %s", tool);
	int at = add(s, parent == NONE ? s->agent : parent, l->at_ms, name);
	if (at == NONE)
		return;
	s->all[at].key = key(l, "callId");
	s->all[at].attribute = "agentbox.tool.kind";
	(void)text(l, "kind", s->all[at].value, sizeof(s->all[at].value));
}

static void answered(struct spans *s, const struct line *l)
{
	int at = waiting(s, key(l, "callId"), true);
	if (!is_true(l, "ok"))
		fail(s, at, "the tool says that it failed");
	end(s, at, l->at_ms);
}

static void asked(struct spans *s, const struct line *l, const char *id, const char *name)
{
	int at = add(s, s->agent == NONE ? ROOT : s->agent, l->at_ms, name);
	if (at != NONE)
		s->all[at].key = ~key(l, id); /* a call may have the same id */
}

static void told(struct spans *s, const struct line *l, const char *id)
{
	end(s, waiting(s, ~key(l, id), true), l->at_ms);
}

static void verified(struct spans *s, const struct line *l)
{
	int64_t from_ms = l->at_ms - (int64_t)number(l, "durationMs");
	end_agent(s, from_ms);
	int at = add_whole(s, s->attempt == NONE ? ROOT : s->attempt, from_ms, l->at_ms, "verify");
	if (!is_true(l, "passed"))
		fail(s, at, "not passed");
}

static void step_began(struct spans *s, const struct line *l)
{
	char child[ID_MAX];
	/* It is told behind the run that does it: that run is within it. */
	int64_t made_ms = text(l, "runId", child, sizeof(child)) ? id_ms(child) : 0;
	int at = add(s, ROOT, made_ms && made_ms < l->at_ms ? made_ms : l->at_ms, "step");
	if (at == NONE)
		return;
	struct one *o = &s->all[at];
	o->step = (unsigned)number(l, "step");
	o->attribute = "agentbox.harness";
	(void)text(l, "harness", o->value, sizeof(o->value));
}

static void step_ended(struct spans *s, const struct line *l)
{
	char status[16];
	unsigned step = (unsigned)number(l, "step");
	(void)text(l, "status", status, sizeof(status));
	for (unsigned i = 1; i < s->n; i++) {
		if (!s->all[i].step || s->all[i].step != step)
			continue;
		if (strcmp(status, "succeeded") != 0)
			fail(s, (int)i, status);
		end(s, (int)i, l->at_ms);
	}
}

static void on_permission(struct spans *s, const struct line *l)
{
	asked(s, l, "permissionId", "wait for permission");
}
static void on_permitted(struct spans *s, const struct line *l)
{
	told(s, l, "permissionId");
}
static void on_question(struct spans *s, const struct line *l)
{
	asked(s, l, "questionId", "wait for answer");
}
static void on_answer(struct spans *s, const struct line *l)
{
	told(s, l, "questionId");
}

static const struct {
	const char *type;
	void (*seen)(struct spans *s, const struct line *l);
} types[] = {
        {"run.started", started},
        {"run.retry", retried},
        {"tool.call", called},
        {"tool.result", answered},
        {"permission.asked", on_permission},
        {"permission.answered", on_permitted},
        {"question.asked", on_question},
        {"question.answered", on_answer},
        {"verify.done", verified},
        {"step.started", step_began},
        {"step.done", step_ended},
};

static bool is(const char *p, size_t n, const char *word)
{
	return n == strlen(word) && memcmp(p, word, n) == 0;
}

bool spans_line(struct spans *s, const struct logline_head *h, const char *line, size_t n)
{
	struct line l = {.at_ms = clock_from_rfc3339(h->ts, h->ts_len)};
	if (is(h->type, h->type_len, "run.done")) {
		s->ended_ms = l.at_ms > 0 ? l.at_ms : s->ended_ms;
		return false;
	}
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (is(h->type, h->type_len, types[i].type) &&
		        scan_value((struct span){line, n}, &l.object))
			types[i].seen(s, &l);
	return true;
}

/* ---- life ---- */

struct spans *spans_new(const struct store_run *x)
{
	struct err e;
	struct spans *s = xnew(struct spans);
	(void)str_copy(s->run, sizeof(s->run), x->id);
	(void)str_copy(s->session, sizeof(s->session), x->session);
	(void)str_copy(s->harness, sizeof(s->harness), x->harness);
	(void)str_copy(s->status, sizeof(s->status), x->status);
	(void)str_copy(s->pipeline, sizeof(s->pipeline), x->parent ? x->parent : "");
	s->text = x->trace ? xstrdup(x->trace) : NULL;
	trace_of(s->run, s->text, &s->trace);
	s->result = x->result ? json_parse(x->result, strlen(x->result), &e) : NULL;
	s->created_ms = x->parent ? id_ms(x->id) : x->created_ms; /* as its pipeline says */
	s->started_ms = s->due_ms = x->started_ms;
	s->ended_ms = x->ended_ms;
	s->all = xcalloc(TRACE_SPANS, sizeof(*s->all));
	s->attempt = s->agent = NONE;
	(void)add(s, NONE, s->created_ms, "");
	(void)snprintf(s->all[ROOT].name, NAME_ROOM, "run %s", s->harness);
	(void)add(s, ROOT, s->created_ms, "queue");
	return s;
}

void spans_free(struct spans *s)
{
	if (!s)
		return;
	json_free(s->result);
	free(s->text);
	free(s->all);
	free(s);
}

unsigned spans_dropped(const struct spans *s)
{
	return s->dropped;
}

/* ---- writing ---- */

void spans_attribute(struct jw *w, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	jw_open(w, NULL, '{');
	jw_str(w, "key", name);
	jw_open(w, "value", '{');
	jw_str(w, "stringValue", value);
	jw_close(w, '}');
	jw_close(w, '}');
}

/* 64 bits are texts in this encoding. */
static void count(struct jw *w, const char *name, int64_t value)
{
	char digits[24];
	(void)snprintf(digits, sizeof(digits), "%" PRId64, value);
	jw_open(w, NULL, '{');
	jw_str(w, "key", name);
	jw_open(w, "value", '{');
	jw_str(w, "intValue", digits);
	jw_close(w, '}');
	jw_close(w, '}');
}

static void when(struct jw *w, const char *name, int64_t ms)
{
	char nanos[32];
	(void)snprintf(nanos, sizeof(nanos), "%" PRId64 "000000", ms);
	jw_str(w, name, nanos);
}

static void root_attributes(const struct spans *s, struct jw *w)
{
	const struct json *usage = json_get(s->result, "usage");
	spans_attribute(w, "agentbox.run.id", s->run);
	spans_attribute(w, "agentbox.session.id", s->session);
	spans_attribute(w, "agentbox.harness", s->harness);
	spans_attribute(w, "agentbox.pipeline.run.id", s->pipeline);
	spans_attribute(w, "agentbox.policy", s->policy);
	spans_attribute(w, "agentbox.run.status", s->status);
	spans_attribute(
	        w, "agentbox.run.reason", json_str(json_get(s->result, "exit"), "reason", NULL));
	spans_attribute(w, "gen_ai.agent.name", s->backend);
	spans_attribute(w, "gen_ai.request.model", s->model);
	count(w, "agentbox.run.attempts", json_int(s->result, "attempts", 0));
	count(w, "agentbox.run.tool_calls", json_int(s->result, "toolCalls", 0));
	count(w, "gen_ai.usage.input_tokens", json_int(usage, "inputTokens", 0));
	count(w, "gen_ai.usage.output_tokens", json_int(usage, "outputTokens", 0));
	if (s->dropped)
		count(w, "agentbox.spans.left_out", s->dropped);
}

static void span_id(const struct spans *s, int at, char ret[TRACE_SPAN])
{
	unsigned step = s->all[at].step;
	trace_span(s->run, step ? "step" : "span", step ? step : (unsigned)at, ret);
}

static void write_one(const struct spans *s, int at, struct jw *w)
{
	const struct one *o = &s->all[at];
	char id[TRACE_SPAN], parent[TRACE_SPAN];
	span_id(s, at, id);
	if (o->parent == NONE)
		memcpy(parent, s->trace.parent, sizeof(parent));
	else
		span_id(s, o->parent, parent);
	jw_open(w, NULL, '{');
	jw_str(w, "traceId", s->trace.id);
	jw_str(w, "spanId", id);
	jw_str(w, "parentSpanId", parent[0] ? parent : NULL);
	jw_str(w, "traceState", s->trace.state);
	jw_str(w, "name", o->name);
	jw_int(w, "kind", at == ROOT ? KIND_SERVER : KIND_INTERNAL);
	when(w, "startTimeUnixNano", o->from_ms);
	when(w, "endTimeUnixNano", o->to_ms);
	jw_open(w, "attributes", '[');
	if (at == ROOT)
		root_attributes(s, w);
	else if (o->attribute)
		spans_attribute(w, o->attribute, o->value);
	jw_close(w, ']');
	if (o->failed) {
		jw_open(w, "status", '{');
		jw_int(w, "code", STATUS_ERROR);
		jw_str(w, "message", o->why);
		jw_close(w, '}');
	}
	jw_close(w, '}');
}

/* Children are behind their parents, and within their times, whatever a clock did. */
static void nest(struct spans *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		struct one *o = &s->all[i];
		const struct one *p = o->parent == NONE ? NULL : &s->all[o->parent];
		if (p && o->from_ms < p->from_ms)
			o->from_ms = p->from_ms;
		if (p && o->from_ms > p->to_ms)
			o->from_ms = p->to_ms;
		if (p && o->to_ms > p->to_ms)
			o->to_ms = p->to_ms;
		if (o->to_ms < o->from_ms)
			o->to_ms = o->from_ms;
	}
}

static void finish(struct spans *s)
{
	const char *reason = json_str(json_get(s->result, "exit"), "reason", s->status);
	bool good = strcmp(s->status, "succeeded") == 0 || strcmp(s->status, "cancelled") == 0;
	int64_t collect = json_int(s->result, "collectMs", 0);
	if (s->started_ms && s->attempt == NONE && !s->attempts && !s->backend[0])
		begin_attempt(s, 1); /* its jail did not come to be */
	end_agent(s, s->ended_ms - collect);
	if (collect > 0)
		add_whole(s, s->attempt == NONE ? ROOT : s->attempt, s->ended_ms - collect,
		        s->ended_ms, "artifacts");
	if (!good) {
		fail(s, ROOT, reason);
		fail(s, s->attempt, reason);
	}
	for (unsigned i = 0; i < s->n; i++)
		end(s, (int)i, i == 1 && s->started_ms ? s->started_ms : s->ended_ms);
	nest(s);
}

unsigned spans_write(struct spans *s, struct buf *to)
{
	struct jw w = JW_INIT(to);
	finish(s);
	for (unsigned i = 0; i < s->n; i++)
		write_one(s, (int)i, &w);
	return s->n;
}
