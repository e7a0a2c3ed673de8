#include "base/mem.h"
#include "drivers/claude.h"
#include "drivers/emit.h"

#include <string.h>

static const struct look tools[] = {
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

char *claude_tool_title(const struct driver_run *r, const char *name, const struct json *input)
{
	return looks_title(&r->dialect->looks, r->cwd, name, input);
}

bool claude_tool_use(struct driver_run *r, const struct json *block, const char *parent)
{
	const char *id = json_str(block, "id", NULL), *name = json_str(block, "name", NULL);
	const struct json *input = json_get(block, "input");
	if (!calls_text_ok(id) || !calls_text_ok(name) || !calls_start(&r->calls, id, name))
		return false;
	auto_free char *title = claude_tool_title(r, name, input);
	bool done = emit_call(
	        r->sink, id, name, looks_kind(&r->dialect->looks, name), input, title, parent);
	if (!done)
		calls_finish(&r->calls, id);
	if (r->dialect->files_by_input)
		calls_set_path(&r->calls, id, looks_edits(&r->dialect->looks, name, input));
	claude_plan_call(r, name, input);
	return done;
}

/* ---- results ---- */

/* The content of a tool_result is a string or a list of blocks, of which text is shown. */
static void result_text(const struct json *content, struct buf *to)
{
	if (json_text(content))
		buf_puts(to, json_text(content));
	else
		emit_blocks(to, content);
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
	auto_buf struct buf diff = EMIT_BUF;
	if (json_is_array(patch))
		for (const struct json *h = json_first(patch); h; h = json_next(h))
			put_hunk(&diff, h);
	emit_changed(
	        r->sink, looks_below(r->cwd, path), change, diff.p, diff.failed ? 0 : diff.len);
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

/* Where nothing tells of the change, the words of the tool do: "created and wrote to new file". */
static void note_input(struct driver_run *r, const char *id, const char *output)
{
	const char *path = calls_path(&r->calls, id);
	if (path)
		file_changed(r, path, strstr(output, "new file") ? "add" : "edit", NULL);
}

bool claude_tool_result(struct driver_run *r, const struct json *block, const struct json *detail)
{
	const char *id = json_str(block, "tool_use_id", NULL);
	const char *open = calls_text_ok(id) ? calls_name(&r->calls, id) : NULL;
	if (!open)
		return false;
	bool ok = !json_bool(block, "is_error", false);
	auto_free char *name = xstrdup(open);
	auto_buf struct buf out = BUF_INIT((size_t)LIMIT_LINE * 2);
	result_text(json_get(block, "content"), &out);
	if (out.failed)
		return false;
	const char *output = out.p ? out.p : "";
	int code;
	if (!r->dialect->exit_code || !r->dialect->exit_code(name, ok, output, detail, &code))
		code = -1;
	bool done = emit_result(r->sink, id, name, ok, output, out.len, code);
	if (ok) {
		note_change(r, name, detail);
		note_input(r, id, output);
		claude_plan_result(r, name, detail);
	}
	calls_finish(&r->calls, id);
	return done;
}

const struct driver_dialect claude_itself = {
        .looks = {tools, ARRAY_LEN(tools)},
        .lost = "No conversation found",
        .questions = true,
        .exit_code = exit_code,
};
