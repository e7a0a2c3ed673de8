#include "base/mem.h"
#include "drivers/emit.h"
#include "drivers/pi.h"

#include <string.h>

/* What a tool does, and the member of its arguments that says it best to a person. */
static const struct tool {
	const char *name, *kind, *subject;
	bool path; /* the subject is a path: the title has the tool's name in front */
} tools[] = {
        {"bash", "execute", "command", false},
        {"edit", "edit", "path", true},
        {"find", "search", "pattern", true},
        {"grep", "search", "pattern", true},
        {"ls", "read", "path", true},
        {"read", "read", "path", true},
        {"write", "edit", "path", true},
};

static const struct tool *find_tool(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(tools); i++)
		if (strcmp(tools[i].name, name) == 0)
			return &tools[i];
	return NULL;
}

static char *title_of(const char *name, const struct json *args)
{
	const struct tool *t = find_tool(name);
	const char *subject = t ? json_str(args, t->subject, NULL) : NULL;
	if (!subject || !*subject)
		return xstrdup(name);
	if (!t->path)
		return emit_title(subject);
	auto_free char *whole = xasprintf("%s %s", name, emit_path(subject));
	return emit_title(whole);
}

/* ---- open calls ---- */

static struct pi_call *find_call(const struct driver_run *r, const char *id)
{
	for (size_t i = 0; id && i < r->nopen; i++)
		if (strcmp(r->open[i].id, id) == 0)
			return &r->open[i];
	return NULL;
}

static void call_done(struct pi_call *c)
{
	free(c->id);
	free(c->title);
	free(c->path);
	free(c->seen);
}

static void forget(struct driver_run *r)
{
	for (size_t i = 0; i < r->nopen; i++)
		call_done(&r->open[i]);
	free(r->open);
	r->open = NULL;
	r->nopen = 0;
}

void pi_tools_close(struct driver_run *r)
{
	calls_close_all(&r->calls, r->sink, "The agent ended before the tool answered.");
	forget(r);
}

void pi_tools_done(struct driver_run *r)
{
	forget(r);
	calls_done(&r->calls);
}

bool pi_tool_start(struct driver_run *r, const struct json *line)
{
	const char *id = json_str(line, "toolCallId", NULL),
	           *name = json_str(line, "toolName", NULL);
	const struct json *args = json_get(line, "args");
	if (!calls_text_ok(id) || !calls_text_ok(name) || !calls_start(&r->calls, id, name))
		return false;
	const struct tool *t = find_tool(name);
	const char *path = t && strcmp(t->kind, "edit") == 0 ? json_str(args, "path", NULL) : NULL;
	if (path && strlen(path) >= CALLS_PATH_MAX)
		path = NULL;
	r->open = xrealloc(r->open, r->nopen + 1, sizeof(*r->open));
	char *title = title_of(name, args);
	r->open[r->nopen++] = (struct pi_call){
	        .id = xstrdup(id), .title = title, .path = path ? xstrdup(path) : NULL};
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "callId", id);
	jw_str(&w, "name", name);
	jw_str(&w, "kind", t ? t->kind : "other");
	if (json_is_object(args))
		jw_tree(&w, "input", args);
	else
		jw_raw(&w, "input", "{}", 2);
	jw_str(&w, "title", title);
	return emit_members(r->sink, EVENT_TOOL_CALL, &b);
}

/* Each tells the whole output so far, or its end once it is long: what is new in it is an event. */
bool pi_tool_update(struct driver_run *r, const struct json *line)
{
	struct pi_call *call = find_call(r, json_str(line, "toolCallId", NULL));
	auto_buf struct buf text = BUF_INIT(PI_OUTPUT_MAX);
	if (!call)
		return false;
	emit_blocks(&text, json_path(line, "partialResult", "content", NULL));
	if (text.failed || !text.len)
		return text.failed == 0;
	size_t n = call->seen ? strlen(call->seen) : 0;
	bool more = n < text.len && (!n || memcmp(text.p, call->seen, n) == 0);
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "callId", call->id);
	jw_str(&w, "output", text.p + (more ? n : 0));
	free(call->seen);
	call->seen = buf_take(&text);
	return !more || emit_members(r->sink, EVENT_TOOL_UPDATE, &b);
}

/* ---- results ---- */

/* A patch begins with the names of the file, which the event says. */
static const char *hunks(const char *patch)
{
	const char *at = patch ? strstr(patch, "@@") : NULL;
	return at && (at == patch || at[-1] == '\n') ? at : NULL;
}

static void note_change(
        struct driver_run *r, const char *name, const char *path, const struct json *result)
{
	const char *diff = hunks(json_str(json_get(result, "details"), "patch", NULL));
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "path", emit_path(path));
	/* It does not tell whether a file that it wrote was there before. */
	jw_str(&w, "change", strcmp(name, "write") == 0 ? "add" : "edit");
	jw_str(&w, "diff", diff);
	(void)emit_members(r->sink, EVENT_FILE_CHANGED, &b); /* the result itself is told anyway */
}

bool pi_tool_end(struct driver_run *r, const struct json *line)
{
	const char *id = json_str(line, "toolCallId", NULL);
	const struct json *result = json_get(line, "result");
	struct pi_call *call = find_call(r, id);
	if (!call && (!pi_tool_start(r, line) || !(call = find_call(r, id))))
		return false;
	bool ok = !json_bool(line, "isError", false);
	auto_free char *name = xstrdup(calls_name(&r->calls, id));
	auto_buf struct buf output = EMIT_BUF, b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	double code;
	emit_blocks(&output, json_get(result, "content"));
	if (output.failed)
		return false;
	jw_str(&w, "callId", id);
	jw_str(&w, "name", name);
	jw_bool(&w, "ok", ok);
	jw_str(&w, "output", output.p ? output.p : "");
	if (json_number(json_path(result, "structuredContent", "exit_code", NULL), &code) &&
	        code >= 0 && code <= 255)
		jw_int(&w, "exitCode", (int64_t)code);
	bool whole = emit_members(r->sink, EVENT_TOOL_RESULT, &b);
	if (ok && call->path)
		note_change(r, name, call->path, result);
	call_done(call);
	*call = r->open[--r->nopen];
	calls_finish(&r->calls, id);
	return whole;
}
