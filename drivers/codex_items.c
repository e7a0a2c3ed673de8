#include "base/mem.h"
#include "drivers/codex.h"
#include "drivers/emit.h"

#include <string.h>

/* ---- what an item is ---- */

enum kind { OTHER, MESSAGE, REASONING, COMMAND, CHANGE, MCP, SEARCH, TODO, WARNING };

static enum kind kind_of(const struct json *item)
{
	static const struct {
		const char *name;
		enum kind kind;
	} kinds[] = {
	        {"agent_message", MESSAGE},
	        {"agentMessage", MESSAGE},
	        {"reasoning", REASONING},
	        {"command_execution", COMMAND},
	        {"commandExecution", COMMAND},
	        {"file_change", CHANGE},
	        {"fileChange", CHANGE},
	        {"mcp_tool_call", MCP},
	        {"mcpToolCall", MCP},
	        {"web_search", SEARCH},
	        {"webSearch", SEARCH},
	        {"todo_list", TODO},
	        {"error", WARNING},
	};
	const char *type = json_str(item, "type", "");
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(type, kinds[i].name) == 0)
			return kinds[i].kind;
	return OTHER;
}

/* A member by its name in exec, or in the app-server. */
static const struct json *member(const struct json *item, const char *exec, const char *server)
{
	const struct json *m = json_get(item, exec);
	return m ? m : json_get(item, server);
}

/* "add" in exec, {"type":"add"} in the app-server; as events call it, or NULL. */
static const char *change_word(const struct json *change)
{
	static const char *const kinds[][2] = {
	        {"add", "add"}, {"update", "edit"}, {"delete", "delete"}};
	const struct json *kind = json_get(change, "kind");
	const char *word = json_is_object(kind) ? json_str(kind, "type", "") : json_text(kind);
	for (size_t i = 0; word && i < ARRAY_LEN(kinds); i++)
		if (strcmp(word, kinds[i][0]) == 0)
			return kinds[i][1];
	return NULL;
}

/* ---- calls ---- */

/* What a call is named, what it does, and what of it a person wants to see. */
struct call_of {
	char name[CALLS_TEXT_MAX];
	const char *kind;
	char *title; /* owned */
};

/* The command without the shell that runs it, where Codex says it. */
static char *command_title(const struct json *item)
{
	const struct json *actions = json_get(item, "commandActions");
	const struct json *only = json_is_array(actions) ? json_first(actions) : NULL;
	const char *inner = only && !json_next(only) ? json_str(only, "command", NULL) : NULL;
	return emit_title(inner ? inner : json_str(item, "command", ""));
}

static char *change_title(const struct json *item)
{
	const struct json *changes = json_get(item, "changes");
	const struct json *first = json_is_array(changes) ? json_first(changes) : NULL;
	const char *word = change_word(first);
	auto_free char *what = xasprintf(
	        "%s %s", word ? word : "change", emit_path(json_str(first, "path", "files")));
	return emit_title(what);
}

/* false: it is no call. */
static bool call_of(const struct json *item, struct call_of *ret)
{
	switch (kind_of(item)) {
	case COMMAND:
		*ret = (struct call_of){"shell", "execute", command_title(item)};
		return true;
	case CHANGE:
		*ret = (struct call_of){"apply_patch", "edit", change_title(item)};
		return true;
	case SEARCH:
		*ret = (struct call_of){
		        "web_search", "search", emit_title(json_str(item, "query", ""))};
		return true;
	case MCP: {
		auto_free char *name = xasprintf("mcp__%.100s__%.100s",
		        json_str(item, "server", "?"), json_str(item, "tool", "?"));
		(void)str_copy(ret->name, sizeof(ret->name), name);
		ret->kind = "other";
		ret->title = xstrdup(ret->name);
		return true;
	}
	case OTHER:
	case MESSAGE:
	case REASONING:
	case TODO:
	case WARNING:
		break;
	}
	return false;
}

char *codex_input_of(const struct json *item)
{
	static const char *const members[] = {"command", "cwd", "changes", "query"};
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	if (json_is_object(json_get(item, "arguments"))) {
		jw_tree(&w, NULL, json_get(item, "arguments"));
		return buf_take(&b);
	}
	jw_open(&w, NULL, '{');
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		if (json_get(item, members[i]))
			jw_tree(&w, members[i], json_get(item, members[i]));
	jw_close(&w, '}');
	return buf_take(&b); /* of one line, which fits */
}

static bool call_started(struct codex_items *c, const struct json *item)
{
	const char *id = json_str(item, "id", NULL);
	struct call_of call = {0};
	if (!calls_text_ok(id) || !call_of(item, &call))
		return false;
	free(c->title);
	c->title = call.title;
	free(c->title_of);
	c->title_of = xstrdup(id);
	free(c->input);
	c->input = codex_input_of(item);
	if (!calls_text_ok(call.name) || !calls_start(&c->calls, id, call.name))
		return false;
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "callId", id);
	jw_str(&w, "name", call.name);
	jw_str(&w, "kind", call.kind);
	jw_raw(&w, "input", c->input, strlen(c->input));
	jw_str(&w, "title", call.title);
	return emit_members(c->sink, EVENT_TOOL_CALL, &b);
}

/* ---- results ---- */

/* The text of an MCP server's answer, or of its failure. */
static void put_answer(struct buf *to, const struct json *item)
{
	if (json_is_object(json_get(item, "error")))
		buf_puts(to, json_str(json_get(item, "error"), "message", ""));
	emit_blocks(to, json_path(item, "result", "content", NULL));
}

static bool item_result(struct codex_items *c, const struct json *item, const char *id)
{
	auto_buf struct buf output = EMIT_BUF, b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	double code;
	const char *status = json_str(item, "status", ""),
	           *text = json_text(member(item, "aggregated_output", "aggregatedOutput"));
	if (!text && strcmp(status, "declined") == 0)
		text = "The call was declined.";
	else if (!text && strcmp(status, "failed") == 0 && kind_of(item) == CHANGE)
		text = "The patch could not be applied.";
	buf_puts(&output, text ? text : "");
	put_answer(&output, item);
	if (output.failed)
		return false;
	jw_str(&w, "callId", id);
	jw_str(&w, "name", calls_name(&c->calls, id));
	/* A search has no status: it is there when it is done. */
	jw_bool(&w, "ok", strcmp(status, "completed") == 0 || kind_of(item) == SEARCH);
	jw_str(&w, "output", output.p ? output.p : "");
	const struct json *exit_code = member(item, "exit_code", "exitCode");
	if (json_number(exit_code, &code) && code >= -1 && code <= 255)
		jw_int(&w, "exitCode", (int64_t)code);
	return emit_members(c->sink, EVENT_TOOL_RESULT, &b);
}

/* ---- changed files ---- */

/* Of a file that comes or goes Codex tells the content, of one that changes the hunks. */
static void put_diff(struct buf *to, const char *word, const char *text)
{
	bool add = strcmp(word, "add") == 0;
	if (strcmp(word, "edit") == 0) {
		buf_puts(to, text);
		return;
	}
	int lines = 0;
	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n')
		lines++;
	if (lines == 0)
		return;
	buf_printf(to, add ? "@@ -0,0 +1,%d @@\n" : "@@ -1,%d +0,0 @@\n", lines);
	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n')
		buf_printf(to, "%c%.*s\n", add ? '+' : '-', (int)strcspn(p, "\n"), p);
}

static bool emit_change(
        struct codex_items *c, const char *path, const char *word, const char *content)
{
	auto_buf struct buf b = EMIT_BUF, diff = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	if (content)
		put_diff(&diff, word, content);
	jw_str(&w, "path", emit_path(path));
	jw_str(&w, "change", word);
	if (diff.len && !diff.failed)
		jw_bytes(&w, "diff", diff.p, diff.len);
	return emit_members(c->sink, EVENT_FILE_CHANGED, &b);
}

static bool emit_changes(struct codex_items *c, const struct json *item)
{
	const struct json *changes = json_get(item, "changes");
	bool all = true;
	if (!json_is_array(changes) || strcmp(json_str(item, "status", ""), "completed") != 0)
		return true;
	for (const struct json *it = json_first(changes); it; it = json_next(it)) {
		const char *path = json_str(it, "path", NULL), *word = change_word(it);
		const char *moved = json_str(json_get(it, "kind"), "move_path", NULL);
		const char *diff = json_str(it, "diff", NULL);
		if (!path || !word) {
			all = false;
		} else if (moved) {
			all &= emit_change(c, path, "delete", NULL);
			all &= emit_change(c, moved, "add", NULL);
		} else {
			all &= emit_change(c, path, word, diff);
		}
	}
	return all;
}

static bool call_done(struct codex_items *c, const struct json *item)
{
	const char *id = json_str(item, "id", NULL);
	/* One that was over at once was never said to begin. */
	if (!calls_text_ok(id) || (!calls_name(&c->calls, id) && !call_started(c, item)))
		return false;
	bool whole = item_result(c, item, id);
	if (whole)
		calls_finish(&c->calls, id);
	return emit_changes(c, item) && whole;
}

/* ---- what it says ---- */

/* The parts of a list of texts, with an empty line in between; returns owned, or NULL. */
static char *joined(const struct json *list)
{
	auto_buf struct buf b = EMIT_BUF;
	if (!json_is_array(list))
		return NULL;
	for (const struct json *it = json_first(list); it; it = json_next(it))
		if (json_text(it))
			buf_printf(&b, "%s%s", b.len ? "\n\n" : "", json_text(it));
	return b.failed || !b.len ? NULL : buf_take(&b);
}

static bool thought(struct codex_items *c, const struct json *item, const char *id)
{
	auto_free char *summary = joined(json_get(item, "summary"));
	auto_free char *content = joined(json_get(item, "content"));
	const char *text = json_str(item, "text", summary ? summary : content);
	if (!text)
		return json_is_array(json_get(item, "summary")); /* one that is kept secret */
	return emit_text(c->sink, EVENT_AGENT_THINKING, text, strlen(text), false, id, NULL);
}

static bool message(struct codex_items *c, const struct json *item, const char *id)
{
	const char *text = json_str(item, "text", NULL);
	if (!text)
		return false;
	tail_clear(&c->text);
	tail_add(&c->text, text, strlen(text));
	free(c->partial);
	c->partial = NULL;
	return emit_text(c->sink, EVENT_AGENT_MESSAGE, text, strlen(text), false, id, NULL);
}

bool codex_text_delta(struct codex_items *c, const char *id, const char *text)
{
	if (!calls_text_ok(id) || !text)
		return false;
	if (!c->partial || strcmp(c->partial, id) != 0) {
		tail_clear(&c->text);
		free(c->partial);
		c->partial = xstrdup(id);
	}
	tail_add(&c->text, text, strlen(text));
	return emit_text(c->sink, EVENT_AGENT_MESSAGE, text, strlen(text), true, id, NULL);
}

bool codex_plan(struct codex_items *c, const struct json *steps, const char *key)
{
	if (!json_is_array(steps))
		return false;
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_open(&w, "entries", '[');
	for (const struct json *s = json_first(steps); s; s = json_next(s)) {
		const char *status = json_str(s, "status", "pending");
		if (json_bool(s, "completed", false))
			status = "completed";
		jw_open(&w, NULL, '{');
		jw_str(&w, "text", json_str(s, key, ""));
		jw_str(&w, "status", strcmp(status, "inProgress") == 0 ? "in_progress" : status);
		jw_close(&w, '}');
	}
	jw_close(&w, ']');
	return emit_members(c->sink, EVENT_PLAN_UPDATED, &b);
}

/* ---- items ---- */

bool codex_item_started(struct codex_items *c, const struct json *item)
{
	if (kind_of(item) == TODO)
		return codex_plan(c, json_get(item, "items"), "text");
	return call_started(c, item);
}

bool codex_item_completed(struct codex_items *c, const struct json *item)
{
	const char *id = json_str(item, "id", NULL), *text;
	if (id && !calls_text_ok(id))
		id = NULL;
	switch (kind_of(item)) {
	case MESSAGE:
		return message(c, item, id);
	case REASONING:
		return thought(c, item, id);
	case TODO:
		return codex_plan(c, json_get(item, "items"), "text");
	case WARNING:
		text = json_str(item, "message", NULL);
		if (text)
			emit_error(c->sink, text, "warning", true);
		return text != NULL;
	case COMMAND:
	case CHANGE:
	case MCP:
	case SEARCH:
	case OTHER:
		break;
	}
	return call_done(c, item);
}

void codex_items_done(struct codex_items *c)
{
	calls_done(&c->calls);
	tail_done(&c->text);
	free(c->title);
	free(c->title_of);
	free(c->input);
	free(c->partial);
}
