/* Trace context, and spans of what a log has of a run. */
#include "supervisor/trace.h"
#include "supervisor/trace_spans.h"

#include "base/json.h"
#include "base/mem.h"
#include "supervisor/logline.h"
#include "supervisor/store.h"
#include "tests/t.h"

static const char good[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
static const char run[] = "run_01jd0000000000000000000000";

static bool takes(const char *parent)
{
	auto_free char *text = trace_take(parent, NULL);
	return text != NULL;
}

static void contexts(void)
{
	static const char *const none[] = {NULL, "", "00", "x",
	        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
	        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
	        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
	        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
	        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
	        "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
	        "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
	        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"};
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		ok(!takes(none[i]), "none: %s", none[i] ? none[i] : "(null)");
	ok(takes(good), "one");
	ok(takes("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes"),
	        "a later version");
	struct trace t;
	auto_free char *text = trace_take(good, "a=1,b=2");
	trace_of(run, text, &t);
	is_str(t.id, "4bf92f3577b34da6a3ce929d0e0e4736", "its trace");
	is_str(t.parent, "00f067aa0ba902b7", "its parent");
	is_str(t.state, "a=1,b=2", "its state");
	ok(t.given && t.sampled && trace_taken(&t, 0), "the client decides");
	auto_free char *bad = trace_take(good, "a=1\r\nx: y");
	is_str(bad, good, "a state that is none is left out");
	auto_free char *off =
	        trace_take("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", NULL);
	trace_of(run, off, &t);
	ok(t.given && !trace_taken(&t, 1000000), "likewise against it");
	struct trace own, same;
	trace_of(run, NULL, &own);
	trace_of(run, NULL, &same);
	ok(!own.given && strlen(own.id) == 32 && strcmp(own.id, same.id) == 0, "one of its own");
	ok(trace_taken(&own, 1000000) && !trace_taken(&own, 0), "all, and none");
	unsigned taken = 0;
	for (int i = 0; i < 2000; i++) {
		char id[ID_MAX];
		id_new("run", id);
		trace_of(id, NULL, &own);
		taken += trace_taken(&own, 250000);
	}
	ok(taken > 350 && taken < 650, "a quarter: %u of 2000", taken);
	auto_free char *step = trace_of_step(&t, run, 2);
	struct trace of_step;
	char span[TRACE_SPAN];
	trace_span(run, "step", 2, span);
	trace_of("run_01jd0000000000000000000001", step, &of_step);
	is_str(of_step.id, t.id, "a step is of its pipeline's trace");
	is_str(of_step.parent, span, "below its step");
}

/* ---- spans ---- */

static uint64_t seq;

static void say(struct spans *s, int second, const char *rest)
{
	char line[4096];
	struct logline_head h;
	int n = snprintf(line, sizeof(line),
	        "{\"seq\":%llu,\"ts\":\"2026-01-01T00:00:%02d.000Z\",\"session\":\"s\","
	        "\"run\":\"%s\",%s}",
	        (unsigned long long)++seq, second, run, rest);
	must(logline_head(line, (size_t)n, &h), "a line");
	(void)spans_line(s, &h, line, (size_t)n);
}

static struct json *written(struct spans *s)
{
	static struct buf b = BUF_INIT(4 << 20);
	struct err e;
	buf_clear(&b);
	buf_putc(&b, '[');
	(void)spans_write(s, &b);
	buf_putc(&b, ']');
	struct json *j = b.failed ? NULL : json_parse(b.p, b.len, &e);
	must(j != NULL, "JSON");
	return j;
}

static const struct json *named(const struct json *all, const char *name)
{
	for (const struct json *x = json_first(all); x; x = json_next(x))
		if (strcmp(json_str(x, "name", ""), name) == 0)
			return x;
	return NULL;
}

static const char *parent_of(const struct json *all, const char *name)
{
	const char *id = json_str(named(all, name), "parentSpanId", "");
	for (const struct json *x = json_first(all); x; x = json_next(x))
		if (strcmp(json_str(x, "spanId", ""), id) == 0)
			return json_str(x, "name", "");
	return "(none)";
}

static int64_t second_of(const struct json *all, const char *name, const char *member)
{
	return strtoll(json_str(named(all, name), member, "0"), NULL, 10) / 1000000000 - 1767225600;
}

#define AT(second) (INT64_C(1767225600000) + (second)*1000)

static struct store_run record(void)
{
	return (struct store_run){.id = run,
	        .session = "ses_x",
	        .harness = "h",
	        .status = "failed",
	        .result = "{\"exit\":{\"reason\":\"signal\"},\"collectMs\":1000,\"attempts\":1}",
	        .created_ms = AT(1),
	        .started_ms = AT(3),
	        .ended_ms = AT(50)};
}

static void tree(void)
{
	struct store_run x = record();
	struct spans *s = spans_new(&x);
	say(s, 5, "\"type\":\"run.started\",\"backend\":\"b\",\"attempt\":1");
	say(s, 6, "\"type\":\"tool.call\",\"callId\":\"a\",\"name\":\"Task\",\"kind\":\"other\"");
	say(s, 7,
	        "\"type\":\"tool.call\",\"callId\":\"b\",\"name\":\"Sub\\u0000\\nx\\\"\","
	        "\"kind\":\"execute\",\"parentCallId\":\"a\"");
	say(s, 8, "\"type\":\"permission.asked\",\"permissionId\":\"a\"");
	say(s, 11, "\"type\":\"permission.answered\",\"permissionId\":\"a\",\"answer\":\"deny\"");
	say(s, 12, "\"type\":\"tool.result\",\"callId\":\"a\",\"ok\":true");
	/* longer than the one that has called it, and it is never answered */
	say(s, 20, "\"type\":\"question.asked\",\"questionId\":\"q\"");
	say(s, 40, "\"type\":\"verify.done\",\"passed\":false,\"durationMs\":4000");
	say(s, 45, "\"type\":\"run.done\",\"result\":{}");
	auto_json struct json *all = written(s);
	is_str(json_str(json_get(named(all, "run h"), "status"), "message", ""), "signal",
	        "why it failed");
	is_str(parent_of(all, "queue"), "run h", "queue");
	is_str(parent_of(all, "attempt"), "run h", "attempt");
	is_str(parent_of(all, "start jail"), "attempt", "jail");
	is_str(parent_of(all, "agent"), "attempt", "agent");
	is_str(parent_of(all, "tool Task"), "agent", "a tool");
	is_str(parent_of(all, "tool Sub\\u0000\\nx\\."), "tool Task", "one that it has called");
	is_str(parent_of(all, "wait for permission"), "agent", "a question");
	is_str(parent_of(all, "verify"), "attempt", "the check");
	is_str(parent_of(all, "artifacts"), "attempt", "what is kept");
	ok(second_of(all, "queue", "endTimeUnixNano") == 3, "queued until its slot");
	ok(second_of(all, "start jail", "startTimeUnixNano") == 3 &&
	                second_of(all, "start jail", "endTimeUnixNano") == 5,
	        "then its jail");
	ok(second_of(all, "agent", "endTimeUnixNano") == 36, "the agent until the check");
	ok(second_of(all, "wait for permission", "endTimeUnixNano") == 11, "an answer");
	ok(second_of(all, "tool Task", "endTimeUnixNano") == 12, "a result");
	ok(second_of(all, "wait for answer", "endTimeUnixNano") == 36, "none: until the end");
	ok(second_of(all, "tool Sub\\u0000\\nx\\.", "endTimeUnixNano") == 12,
	        "within the one that has called it");
	ok(second_of(all, "run h", "endTimeUnixNano") == 45, "run.done is its end");
	spans_free(s);
}

static void never_began(void)
{
	struct store_run x = record();
	x.status = "cancelled";
	x.started_ms = 0;
	x.result = NULL;
	struct spans *s = spans_new(&x);
	say(s, 2, "\"type\":\"run.queued\",\"position\":1");
	auto_json struct json *all = written(s);
	ok(json_next(json_next(json_first(all))) == NULL &&
	                second_of(all, "queue", "endTimeUnixNano") == 50,
	        "one that only waited");
	ok(!json_get(named(all, "run h"), "status"), "cancelled is no error");
	spans_free(s);
}

static void clocks(void)
{
	struct store_run x = record();
	x.created_ms = AT(30); /* set back meanwhile */
	struct spans *s = spans_new(&x);
	say(s, 10, "\"type\":\"run.started\",\"backend\":\"b\",\"attempt\":1");
	say(s, 9, "\"type\":\"tool.call\",\"callId\":\"a\",\"name\":\"T\",\"kind\":\"other\"");
	say(s, 8, "\"type\":\"run.done\",\"result\":{}");
	auto_json struct json *all = written(s);
	bool nested = true;
	for (const struct json *y = json_first(all); y; y = json_next(y))
		nested &= strcmp(json_str(y, "startTimeUnixNano", ""),
		                  json_str(y, "endTimeUnixNano", "")) <= 0;
	ok(nested, "nothing ends before it begins");
	spans_free(s);
}

static void many(void)
{
	struct store_run x = record();
	struct spans *s = spans_new(&x);
	say(s, 5, "\"type\":\"run.started\",\"backend\":\"b\",\"attempt\":1");
	for (int i = 0; i < 3000; i++) {
		char call[200];
		snprintf(call, sizeof(call),
		        "\"type\":\"tool.call\",\"callId\":\"c%d\",\"name\":\"T\",\"kind\":\"x\"",
		        i);
		say(s, 6, call);
	}
	say(s, 7, "\"type\":\"tool.result\",\"callId\":\"c2999\",\"ok\":true");
	say(s, 8, "\"type\":\"tool.call\"");
	say(s, 9, "\"type\":\"tool.result\",\"callId\":7");
	static struct buf b = BUF_INIT(4 << 20);
	unsigned n = spans_write(s, &b);
	ok(n == TRACE_SPANS && !b.failed, "as many as there may be");
	ok(b.len < 400 << 10, "%zu bytes of them leave room", b.len);
	ok(spans_dropped(s) == 3000 + 1 + 5 + 1 - TRACE_SPANS, "the rest is counted");
	buf_done(&b);
	spans_free(s);
}

int main(void)
{
	contexts();
	tree();
	never_began();
	clocks();
	many();
	return done();
}
