#include "base/mem.h"
#include "drivers/codex_server.h"
#include "drivers/emit.h"
#include "drivers/usage.h"

#include <string.h>

/* What Codex tells without being asked: one row a method. */

/* Items that say nothing when they begin, and our own words. */
static bool is_silent(const struct json *item, bool begins)
{
	const char *type = json_str(item, "type", "");
	if (strcmp(type, "userMessage") == 0)
		return true;
	return begins && (strcmp(type, "agentMessage") == 0 || strcmp(type, "reasoning") == 0);
}

static bool on_item_started(
        struct driver_run *r, const struct json *params, struct buf *to_stdin, bool *ret_eof)
{
	(void)to_stdin, (void)ret_eof;
	const struct json *item = json_get(params, "item");
	r->answering |= strcmp(json_str(item, "type", ""), "userMessage") != 0;
	return is_silent(item, true) || codex_item_started(&r->items, item);
}

static bool on_item_completed(
        struct driver_run *r, const struct json *params, struct buf *to_stdin, bool *ret_eof)
{
	(void)to_stdin, (void)ret_eof;
	const struct json *item = json_get(params, "item");
	return is_silent(item, false) || codex_item_completed(&r->items, item);
}

static bool on_text_delta(
        struct driver_run *r, const struct json *params, struct buf *to_stdin, bool *ret_eof)
{
	(void)to_stdin, (void)ret_eof;
	return codex_text_delta(
	        &r->items, json_str(params, "itemId", NULL), json_str(params, "delta", NULL));
}

static bool on_thought_delta(
        struct driver_run *r, const struct json *params, struct buf *to_stdin, bool *ret_eof)
{
	(void)to_stdin, (void)ret_eof;
	const char *id = json_str(params, "itemId", NULL), *text = json_str(params, "delta", NULL);
	return calls_text_ok(id) && text &&
	       emit_text(r->items.sink, EVENT_AGENT_THINKING, text, strlen(text), true, id, NULL);
}

/* Between the parts of a summary is an empty line, as in the whole of it. */
static bool on_thought_part(
        struct driver_run *r, const struct json *params, struct buf *to_stdin, bool *ret_eof)
{
	(void)to_stdin, (void)ret_eof;
	const char *id = json_str(params, "itemId", NULL);
	return calls_text_ok(id) &&
	       (json_int(params, "summaryIndex", 0) == 0 ||
	               emit_text(r->items.sink, EVENT_AGENT_THINKING, "\n\n", 2, true, id, NULL));
}

static bool on_output(
        struct driver_run *r, const struct json *params, struct buf *to_stdin, bool *ret_eof)
{
	(void)to_stdin, (void)ret_eof;
	const char *id = json_str(params, "itemId", NULL);
	const char *text = json_str(params, "delta", json_str(params, "message", NULL));
	if (!calls_text_ok(id) || !text)
		return false;
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "callId", id);
	jw_str(&w, "output", text);
	return emit_members(r->items.sink, EVENT_TOOL_UPDATE, &b);
}

static bool on_plan(
        struct driver_run *r, const struct json *params, struct buf *to_stdin, bool *ret_eof)
{
	(void)to_stdin, (void)ret_eof;
	return codex_plan(&r->items, json_get(params, "plan"), "step");
}

/* One that it retries is told; the other is said again by turn/completed. */
static bool on_error(
        struct driver_run *r, const struct json *params, struct buf *to_stdin, bool *ret_eof)
{
	(void)to_stdin, (void)ret_eof;
	const struct json *error = json_get(params, "error");
	const char *text = json_str(error, "message", NULL),
	           *more = json_str(error, "additionalDetails", NULL);
	if (!text)
		return false;
	if (!json_bool(params, "willRetry", false)) {
		free(r->error);
		r->error = xstrdup(text);
		return true;
	}
	auto_free char *whole = more ? xasprintf("%s (%s)", text, more) : xstrdup(text);
	emit_error(r->items.sink, whole, "api_retry", true);
	return true;
}

static bool on_warning(
        struct driver_run *r, const struct json *params, struct buf *to_stdin, bool *ret_eof)
{
	(void)to_stdin, (void)ret_eof;
	const char *text = json_str(params, "message", json_str(params, "summary", NULL));
	if (text)
		emit_error(r->items.sink, text, "warning", true);
	return text != NULL;
}

static bool on_server_status(
        struct driver_run *r, const struct json *params, struct buf *to_stdin, bool *ret_eof)
{
	(void)to_stdin, (void)ret_eof;
	const char *status = json_str(params, "status", "");
	if (strcmp(status, "failed") != 0)
		return strcmp(status, "starting") == 0 || strcmp(status, "ready") == 0;
	auto_free char *text =
	        xasprintf("MCP server %.80s did not start (%.400s): its tools are missing",
	                json_str(params, "name", "?"), json_str(params, "error", status));
	emit_error(r->items.sink, text, "mcp_failed", true);
	return true;
}

static bool on_resolved(
        struct driver_run *r, const struct json *params, struct buf *to_stdin, bool *ret_eof)
{
	(void)to_stdin, (void)ret_eof;
	return codex_ask_resolved(r, params);
}

static bool on_usage(
        struct driver_run *r, const struct json *params, struct buf *to_stdin, bool *ret_eof)
{
	(void)to_stdin, (void)ret_eof;
	return codex_usage(r, params);
}

static bool on_turn_started(
        struct driver_run *r, const struct json *params, struct buf *to_stdin, bool *ret_eof)
{
	(void)ret_eof;
	codex_turn_begun(r, json_get(params, "turn"), to_stdin);
	return true;
}

static bool on_nothing(
        struct driver_run *r, const struct json *params, struct buf *to_stdin, bool *ret_eof)
{
	(void)r, (void)params, (void)to_stdin, (void)ret_eof;
	return true;
}

static const struct method {
	const char *name;
	bool (*heed)(struct driver_run *r, const struct json *params, struct buf *to_stdin,
	        bool *ret_eof);
} methods[] = {
        {"error", on_error}, {"item/agentMessage/delta", on_text_delta},
        {"item/commandExecution/outputDelta", on_output}, {"item/completed", on_item_completed},
        {"item/mcpToolCall/progress", on_output},
        {"item/reasoning/summaryPartAdded", on_thought_part},
        {"item/reasoning/summaryTextDelta", on_thought_delta},
        {"item/reasoning/textDelta", on_thought_delta}, {"item/started", on_item_started},
        {"mcpServer/startupStatus/updated", on_server_status},
        {"serverRequest/resolved", on_resolved}, {"thread/tokenUsage/updated", on_usage},
        {"turn/completed", codex_turn_completed}, {"turn/plan/updated", on_plan},
        {"turn/started", on_turn_started}, {"configWarning", on_warning},
        {"deprecationNotice", on_warning}, {"guardianWarning", on_warning}, {"warning", on_warning},
        /* What follows says nothing that an event does not say better. */
        {"account/rateLimits/updated", on_nothing}, {"remoteControl/status/changed", on_nothing},
        {"thread/goal/cleared", on_nothing}, {"thread/name/updated", on_nothing},
        {"thread/settings/updated", on_nothing}, {"thread/started", on_nothing},
        {"thread/status/changed", on_nothing},
        {"turn/diff/updated", on_nothing}, /* the sum of the patches */
};

bool codex_idle(const char *p, size_t n)
{
	auto_json struct json *line = json_parse(p, n, NULL);
	const char *method = json_str(line, "method", "");
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (strcmp(methods[i].name, method) == 0)
			return (methods[i].heed == on_nothing || methods[i].heed == on_usage) &&
			       !json_get(line, "id");
	return n == 0;
}

/* Of another thread, a subagent's: shown, and paid for. */
static bool other_thread(struct driver_run *r, const char *method, const struct json *params)
{
	if (strcmp(method, "thread/tokenUsage/updated") != 0)
		return strncmp(method, "thread/", 7) == 0;
	struct driver_usage last = codex_usage_of(json_path(params, "tokenUsage", "last", NULL));
	last.turns = 1;
	usage_add(&r->others, &last);
	return true;
}

bool codex_notification(
        struct driver_run *r, const struct json *line, struct buf *to_stdin, bool *ret_eof)
{
	const char *method = json_str(line, "method", "");
	const struct json *params = json_get(line, "params");
	const char *thread = json_str(params, "threadId", NULL);
	if (thread && r->thread && strcmp(thread, r->thread) != 0)
		return other_thread(r, method, params);
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (strcmp(methods[i].name, method) == 0)
			return methods[i].heed(r, params, to_stdin, ret_eof);
	return false;
}
