#include "base/mem.h"
#include "drivers/claude.h"
#include "drivers/emit.h"

#include <string.h>

/* What a built-in tool does, and the member of its input that says it best to a person. */
static const struct tool {
	const char *name, *kind, *subject;
	bool path; /* the subject is a path: the title has the tool's name in front */
} tools[] = {
        {"Bash", "execute", "command", false},
        {"BashOutput", "other", "bash_id", false},
        {"Edit", "edit", "file_path", true},
        {"Glob", "search", "pattern", false},
        {"Grep", "search", "pattern", false},
        {"LS", "read", "path", true},
        {"Monitor", "execute", "command", false},
        {"MultiEdit", "edit", "file_path", true},
        {"NotebookEdit", "edit", "notebook_path", true},
        {"Read", "read", "file_path", true},
        {"Skill", "other", "skill", false},
        {"Task", "think", "description", false},
        {"Agent", "think", "description", false},
        {"TaskCreate", "think", "subject", false},
        {"TaskUpdate", "think", "taskId", false},
        {"TodoWrite", "think", NULL, false},
        {"ToolSearch", "search", "query", false},
        {"WebFetch", "fetch", "url", false},
        {"WebSearch", "search", "query", false},
        {"Write", "edit", "file_path", true},
};

static const struct tool *find_tool(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(tools); i++)
		if (strcmp(tools[i].name, name) == 0)
			return &tools[i];
	return NULL;
}

const char *claude_tool_kind(const char *name)
{
	const struct tool *t = find_tool(name);
	return t ? t->kind : "other";
}

/* Below the working directory: without it. */
static const char *relative(const struct driver_run *r, const char *path)
{
	size_t n = r->cwd ? strlen(r->cwd) : 0;
	if (n && strncmp(path, r->cwd, n) == 0 && path[n] == '/' && path[n + 1])
		return path + n + 1;
	return path;
}

char *claude_tool_title(const struct driver_run *r, const char *name, const struct json *input)
{
	const struct tool *t = find_tool(name);
	const char *subject = t && t->subject ? json_str(input, t->subject, NULL) : NULL;
	if (!subject || !*subject)
		return xstrdup(name);
	if (t->path)
		subject = relative(r, subject);
	/* 120 bytes of the first line: a title is one line of a terminal. */
	size_t n = strcspn(subject, "\n"), cut = n > 120 ? utf8_floor(subject, 120) : n;
	const char *more = subject[cut] ? "..." : "";
	if (t->path || strcmp(t->kind, "search") == 0)
		return xasprintf("%s %.*s%s", name, (int)cut, subject, more);
	return xasprintf("%.*s%s", (int)cut, subject, more);
}

bool claude_tool_use(struct driver_run *r, const struct json *block, const char *parent)
{
	const char *id = json_str(block, "id", NULL), *name = json_str(block, "name", NULL);
	const struct json *input = json_get(block, "input");
	if (!calls_text_ok(id) || !calls_text_ok(name) || !calls_start(&r->calls, id, name))
		return false;
	auto_free char *title = claude_tool_title(r, name, input);
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "callId", id);
	jw_str(&w, "name", name);
	jw_str(&w, "kind", claude_tool_kind(name));
	if (json_is_object(input))
		jw_tree(&w, "input", input);
	else
		jw_raw(&w, "input", "{}", 2);
	jw_str(&w, "title", title);
	jw_str(&w, "parentCallId", parent);
	bool done = emit_members(r->sink, EVENT_TOOL_CALL, &b);
	claude_plan_call(r, name, input);
	return done;
}

/* ---- results ---- */

/* The content of a tool_result is a string or a list of blocks, of which text is shown. */
static void result_text(const struct json *content, struct buf *to)
{
	if (json_text(content)) {
		buf_puts(to, json_text(content));
		return;
	}
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

/* Bash tells a status other than 0 only in words: "Exit code 3\n...". */
static bool exit_code(
        const char *name, bool ok, const char *output, const struct json *detail, int *ret_code)
{
	if (strcmp(name, "Bash") != 0)
		return false;
	if (ok) { /* a command moved to the background has not ended */
		*ret_code = 0;
		return json_is_object(detail) && !json_str(detail, "backgroundTaskId", NULL);
	}
	static const char words[] = "Exit code ";
	if (strncmp(output, words, sizeof(words) - 1) != 0)
		return false;
	char *end;
	long code = strtol(output + sizeof(words) - 1, &end, 10);
	if (end == output + sizeof(words) - 1 || (*end && *end != '\n') || code < 0 || code > 255)
		return false;
	*ret_code = (int)code;
	return true;
}

static void put_hunk(struct buf *to, const struct json *hunk)
{
	const struct json *lines = json_get(hunk, "lines");
	buf_printf(to, "@@ -%lld,%lld +%lld,%lld @@\n", (long long)json_int(hunk, "oldStart", 0),
	        (long long)json_int(hunk, "oldLines", 0), (long long)json_int(hunk, "newStart", 0),
	        (long long)json_int(hunk, "newLines", 0));
	if (!json_is_array(lines))
		return;
	for (const struct json *l = json_first(lines); l; l = json_next(l)) {
		buf_puts(to, json_text(l) ? json_text(l) : "");
		buf_putc(to, '\n');
	}
}

static void file_changed(
        struct driver_run *r, const char *path, const char *change, const struct json *patch)
{
	auto_buf struct buf diff = EMIT_BUF, b = EMIT_BUF;
	if (json_is_array(patch))
		for (const struct json *h = json_first(patch); h; h = json_next(h))
			put_hunk(&diff, h);
	struct jw w = JW_INIT(&b);
	jw_str(&w, "path", relative(r, path));
	jw_str(&w, "change", change);
	if (diff.len && !diff.failed)
		jw_bytes(&w, "diff", diff.p, diff.len);
	(void)emit_members(r->sink, EVENT_FILE_CHANGED, &b); /* the result itself is told anyway */
}

/* Write tells {type: create|update, filePath, structuredPatch}, Edit the same without type. */
static void note_change(struct driver_run *r, const char *name, const struct json *detail)
{
	const char *path = json_str(detail, "filePath", NULL);
	const struct json *patch = json_get(detail, "structuredPatch");
	if (path && json_is_array(patch)) {
		bool made = strcmp(json_str(detail, "type", ""), "create") == 0;
		file_changed(r, path, made ? "add" : "edit", patch);
	} else if (strcmp(name, "NotebookEdit") == 0 && json_str(detail, "notebook_path", NULL)) {
		file_changed(r, json_str(detail, "notebook_path", NULL), "edit", NULL);
	}
}

bool claude_tool_result(struct driver_run *r, const struct json *block, const struct json *detail)
{
	const char *id = json_str(block, "tool_use_id", NULL);
	if (!calls_text_ok(id))
		return false;
	bool ok = !json_bool(block, "is_error", false);
	auto_free char *name = xstrdup(calls_name(&r->calls, id) ? calls_name(&r->calls, id) : "");
	auto_buf struct buf out = EMIT_BUF, b = EMIT_BUF;
	result_text(json_get(block, "content"), &out);
	if (out.failed)
		return false;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "callId", id);
	jw_str(&w, "name", name);
	jw_bool(&w, "ok", ok);
	jw_bytes(&w, "output", out.p ? out.p : "", out.len);
	int code;
	if (exit_code(name, ok, out.p ? out.p : "", detail, &code))
		jw_int(&w, "exitCode", code);
	bool done = emit_members(r->sink, EVENT_TOOL_RESULT, &b);
	if (ok) {
		note_change(r, name, detail);
		claude_plan_result(r, name, detail);
	}
	calls_finish(&r->calls, id);
	return done;
}
