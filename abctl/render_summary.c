#include "abctl/render_summary.h"
#include "abctl/human.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

static void part(struct buf *to, const char *between, const char *text, const char *unit)
{
	if (to->len)
		buf_puts(to, between);
	buf_printf(to, "%s%s", text, unit);
}

void summary_usage(struct buf *to, const struct json *usage, const char *between)
{
	int64_t turns = json_int(usage, "turns", 0);
	/* What was read from a cache costs little and would hide the rest. */
	int64_t tokens = json_int(usage, "inputTokens", 0) + json_int(usage, "outputTokens", 0);
	double cost = json_num(usage, "costUsd", -1);
	if (turns > 0)
		part(to, between, human_count(turns).s, turns == 1 ? " turn" : " turns");
	if (tokens > 0)
		part(to, between, human_count(tokens).s, " tokens");
	if (cost >= 0)
		part(to, between, human_money(cost).s, "");
}

static void numbers(struct writer *w, const struct json *result)
{
	const char *between = w->o.utf8 ? " · " : ", ";
	auto_buf struct buf b = BUF_INIT(1024);
	int64_t calls = json_int(result, "toolCalls", 0), tries = json_int(result, "attempts", 1);
	part(&b, between, human_duration(json_int(result, "durationMs", 0)).s, "");
	summary_usage(&b, json_get(result, "usage"), between);
	if (calls > 0)
		part(&b, between, human_count(calls).s, calls == 1 ? " tool call" : " tool calls");
	if (tries > 1)
		part(&b, between, human_count(tries).s, " attempts");
	const struct json *res = json_get(result, "resources");
	int64_t peak = json_int(res, "memoryPeakBytes", 0), cpu = json_int(res, "cpuMs", 0);
	if (cpu > 0)
		part(&b, between, human_duration(cpu).s, " cpu");
	if (peak > 0)
		part(&b, between, human_bytes((uint64_t)peak).s, " peak");
	const struct json *egress = json_get(result, "egress");
	int64_t in = json_int(egress, "bytesIn", 0), out = json_int(egress, "bytesOut", 0);
	int64_t denied = json_int(egress, "denied", 0);
	if (in + out > 0) {
		part(&b, between, human_bytes((uint64_t)in).s, " in");
		part(&b, between, human_bytes((uint64_t)out).s, " out");
	}
	if (denied > 0)
		part(&b, between, human_count(denied).s, " refused by egress");
	writer_own(w, PAINT_NONE, w->o.utf8 ? " · " : ", ");
	writer_own(w, PAINT_NONE, b.p);
}

static void artifacts(struct writer *w, const struct json *list)
{
	for (const struct json *a = json_first(list); a; a = json_next(a)) {
		int64_t bytes = json_int(a, "bytes", -1);
		struct human size = {""};
		if (bytes >= 0)
			size = human_bytes((uint64_t)bytes);
		writer_own(w, PAINT_NONE, "  ");
		writer_cut(w, PAINT_BOLD, strlen(size.s) + 2, json_str(a, "path", "?"));
		writer_own(w, PAINT_NONE, "  ");
		writer_own(w, PAINT_DIM, size.s);
		writer_newline(w);
	}
}

/* Why it ended, where that is more than "it was done". */
static void reason(struct writer *w, const struct json *result)
{
	const struct json *error = json_get(result, "error");
	const char *text = json_text(error) ? json_text(error) : json_str(error, "message", NULL);
	const struct json *ended = json_get(result, "exit");
	const char *why = json_str(ended, "reason", "exit");
	int64_t code = json_int(ended, "code", 0), sig = json_int(ended, "signal", 0);
	/* Of a run that was not started the last line on stderr tells it (follow.c). */
	bool told = strcmp(why, "not started") == 0 && !json_get(ended, "code");
	if (text && *text && !told) {
		writer_text(w, PAINT_BAD, "  ", text, strlen(text));
		writer_fresh_line(w);
	}
	if (strcmp(json_str(result, "status", ""), "succeeded") == 0)
		return;
	auto_buf struct buf b = BUF_INIT(4096);
	if (code)
		buf_printf(&b, "exit code %" PRId64 "  ", code);
	if (sig)
		buf_printf(&b, "signal %" PRId64 "  ", sig);
	/* Often the status says it already. */
	if (strcmp(why, "exit") != 0 && strcmp(why, json_str(result, "status", "")) != 0)
		buf_printf(&b, "(%s)", why);
	if (!b.len)
		return;
	writer_own(w, PAINT_NONE, "  ");
	writer_cut(w, PAINT_DIM, 0, b.p);
	writer_newline(w);
}

static void steps(struct writer *w, const struct json *list)
{
	for (const struct json *s = json_first(list); s; s = json_next(s)) {
		auto_free char *text = xasprintf("  step %" PRId64 "  %s  %s  %s",
		        json_int(s, "step", 0), json_str(s, "status", "?"),
		        json_str(s, "runId", "?"), json_str(s, "harness", "?"));
		writer_cut(w, PAINT_DIM, 0, text);
		writer_newline(w);
	}
}

void summary_write(struct writer *w, const struct json *result)
{
	const char *status = json_str(result, "status", "ended");
	bool good = strcmp(status, "succeeded") == 0;
	writer_fresh_line(w);
	writer_own(w, good ? PAINT_GOOD : PAINT_BAD,
	        good ? (w->o.utf8 ? "✓ " : "") : (w->o.utf8 ? "✗ " : ""));
	writer_cut(w, good ? PAINT_GOOD : PAINT_BAD, 0, status);
	numbers(w, result);
	writer_newline(w);
	reason(w, result);
	artifacts(w, json_get(result, "artifacts"));
	steps(w, json_get(result, "steps"));
}
