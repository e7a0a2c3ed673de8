#include "drivers/emit.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

bool emit_members(struct event_sink *sink, enum event_type t, const struct buf *members)
{
	if (members->failed)
		return false;
	sink->emit(sink, t, members->p ? members->p : "", members->len);
	return true;
}

static void raw_piece(
        struct event_sink *sink, const char *stream, const char *p, size_t n, bool more)
{
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_bytes(&w, "line", p, n);
	jw_str(&w, "stream", stream);
	if (more)
		jw_bool(&w, "more", true);
	(void)emit_members(sink, EVENT_AGENT_RAW, &b); /* LIMIT_RAW_PIECE x 6 fits */
}

void emit_raw(struct event_sink *sink, const char *stream, const char *p, size_t n, bool more)
{
	while (n > LIMIT_RAW_PIECE) {
		size_t k = utf8_floor(p, LIMIT_RAW_PIECE);
		raw_piece(sink, stream, p, k, true);
		p += k;
		n -= k;
	}
	raw_piece(sink, stream, p, n, more);
}

void emit_unsaid(struct event_sink *sink, bool understood, const char *p, size_t n, bool whole)
{
	/* A string of the tree ends at its first NUL, so the line has more than the events say. */
	if (!understood || memmem(p, n, "\\u0000", 6))
		emit_raw(sink, NULL, p, n, !whole);
}
_Static_assert(LIMIT_RAW_PIECE * 6 < LIMIT_EVENT - 8192, "a raw piece of control characters fits");

void emit_error(struct event_sink *sink, const char *message, const char *code, bool retryable)
{
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	/* 64 KiB: a message is for a person; the line it came from is at most that or raw. */
	size_t n = strlen(message);
	jw_bytes(&w, "message", message, n > 65536 ? utf8_floor(message, 65536) : n);
	jw_str(&w, "code", code && strlen(code) <= 128 ? code : NULL);
	jw_bool(&w, "retryable", retryable);
	(void)emit_members(sink, EVENT_ERROR, &b);
}

bool emit_text(struct event_sink *sink, enum event_type t, const char *text, size_t n, bool delta,
        const char *id, const char *parent)
{
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_bytes(&w, "text", text, n);
	jw_bool(&w, "delta", delta);
	jw_str(&w, "messageId", id);
	jw_str(&w, "parentCallId", parent);
	return emit_members(sink, t, &b);
}

bool emit_call(struct event_sink *sink, const char *id, const char *name, const char *kind,
        const struct json *input, const char *title, const char *parent)
{
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "callId", id);
	jw_str(&w, "name", name);
	jw_str(&w, "kind", kind);
	if (json_is_object(input))
		jw_tree(&w, "input", input);
	else
		jw_raw(&w, "input", "{}", 2);
	jw_str(&w, "title", title);
	jw_str(&w, "parentCallId", parent);
	return emit_members(sink, EVENT_TOOL_CALL, &b);
}

static bool result(struct event_sink *sink, const char *id, const char *name, bool ok,
        const char *output, size_t n, int code, bool truncated)
{
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "callId", id);
	jw_str(&w, "name", name);
	jw_bool(&w, "ok", ok);
	jw_bytes(&w, "output", output, n);
	if (code >= 0)
		jw_int(&w, "exitCode", code);
	if (truncated)
		jw_bool(&w, "truncated", true);
	return emit_members(sink, EVENT_TOOL_RESULT, &b);
}

bool emit_result(struct event_sink *sink, const char *id, const char *name, bool ok,
        const char *output, size_t n, int code)
{
	if (result(sink, id, name, ok, output, n, code, false))
		return true;
	/* The call is answered in any case; the line that it came from is told, too. */
	size_t piece = n > LIMIT_RAW_PIECE ? utf8_floor(output, LIMIT_RAW_PIECE) : n;
	(void)result(sink, id, name, ok, output, piece, code, true);
	return false;
}

void emit_changed(
        struct event_sink *sink, const char *path, const char *change, const char *diff, size_t n)
{
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "path", path);
	jw_str(&w, "change", change);
	if (n)
		jw_bytes(&w, "diff", diff, n);
	(void)emit_members(sink, EVENT_FILE_CHANGED, &b);
}

void emit_todos(struct event_sink *sink, const struct json *todos)
{
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_open(&w, "entries", '[');
	for (const struct json *t = json_first(todos); t; t = json_next(t)) {
		jw_open(&w, NULL, '{');
		jw_str(&w, "text", json_str(t, "content", json_str(t, "description", "")));
		jw_str(&w, "status", json_str(t, "status", "pending"));
		jw_close(&w, '}');
	}
	jw_close(&w, ']');
	(void)emit_members(sink, EVENT_PLAN_UPDATED, &b); /* the call itself is told anyway */
}

void emit_usage(struct event_sink *sink, const struct driver_usage *u)
{
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_int(&w, "inputTokens", u->input_tokens);
	jw_int(&w, "outputTokens", u->output_tokens);
	jw_int(&w, "cachedTokens", u->cached_tokens);
	if (u->cost_usd >= 0)
		jw_num(&w, "costUsd", u->cost_usd);
	jw_int(&w, "turns", u->turns);
	(void)emit_members(sink, EVENT_USAGE, &b); /* five numbers */
}

void emit_asked(struct event_sink *sink, const char *permission, const char *call, const char *tool,
        const char *title, const char *input)
{
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	size_t n = input ? strlen(input) : 0;
	jw_str(&w, "permissionId", permission);
	jw_str(&w, "callId", call);
	jw_str(&w, "name", tool);
	jw_str(&w, "title", title);
	if (n > EMIT_INPUT_MAX)
		jw_int(&w, "inputBytes", (int64_t)n);
	else if (n)
		jw_raw(&w, "input", input, n);
	jw_open(&w, "options", '[');
	jw_str(&w, NULL, "once");
	jw_str(&w, NULL, "always");
	jw_str(&w, NULL, "deny");
	jw_close(&w, ']');
	(void)emit_members(sink, EVENT_PERMISSION_ASKED, &b); /* ids and titles are short */
}

void emit_answered(struct event_sink *sink, const char *permission, const char *call,
        const char *answer, const char *by, const char *reason)
{
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "permissionId", permission);
	jw_str(&w, "callId", call);
	jw_str(&w, "answer", answer);
	jw_str(&w, "by", by);
	jw_str(&w, "reason", reason);
	(void)emit_members(sink, EVENT_PERMISSION_ANSWERED, &b);
}

void emit_question(
        struct event_sink *sink, const char *id, const char *text, const struct json *options)
{
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "questionId", id);
	jw_str(&w, "text", text);
	if (json_is_array(options))
		jw_tree(&w, "options", options);
	(void)emit_members(sink, EVENT_QUESTION_ASKED, &b); /* of one line, which fits */
}

void emit_question_answered(struct event_sink *sink, const char *id, const char *text)
{
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "questionId", id);
	jw_str(&w, "text", text);
	(void)emit_members(sink, EVENT_QUESTION_ANSWERED, &b); /* LIMIT_PROMPT fits */
}

const char *emit_answer_word(enum driver_answer a)
{
	static const char *const words[] = {
	        [ANSWER_DENY] = "deny", [ANSWER_ONCE] = "once", [ANSWER_ALWAYS] = "always"};
	return words[a];
}

void emit_blocks(struct buf *to, const struct json *content)
{
	if (!json_is_array(content))
		return;
	for (const struct json *b = json_first(content); b; b = json_next(b)) {
		if (to->len)
			buf_putc(to, '\n');
		const char *text = json_str(b, "text", NULL);
		if (text)
			buf_puts(to, text);
		else
			buf_printf(to, "[%.40s]", json_str(b, "type", "?"));
	}
}

char *emit_title(const char *text)
{
	size_t n = strcspn(text, "\n"), cut = n > 120 ? utf8_floor(text, 120) : n;
	return xasprintf("%.*s%s", (int)cut, text, text[cut] ? "..." : "");
}

const char *emit_path(const char *path)
{
	size_t n = strlen(DRIVER_WORKSPACE);
	return strncmp(path, DRIVER_WORKSPACE "/", n + 1) == 0 && path[n + 1] ? path + n + 1 : path;
}
