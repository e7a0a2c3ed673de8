/*
 * codex.c - Codex (`codex exec --json`): one process a run, JSON lines out.
 *
 * The prompt is its stdin, which then ends.  It says thread.started (the id of
 * the conversation), then an item when it begins and when it is done, then
 * turn.completed or turn.failed.  A line is understood (events), known to carry
 * nothing, or passed on whole as agent.raw.
 *
 * It has no way to be asked to stop and none to be limited in tools or turns:
 * what it cannot be told is refused (launch_check).
 */
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "drivers/calls.h"
#include "drivers/driver.h"
#include "drivers/emit.h"
#include "drivers/ending.h"
#include "drivers/launch.h"
#include "drivers/tail.h"

#include <ctype.h>
#include <string.h>

struct driver_run {
	struct event_sink *sink; /* borrowed: longer than the run */
	char *prompt;            /* owned; NULL once written */
	size_t prompt_len;
	bool resumed, lost;
	char *thread; /* owned: id of the conversation, or NULL */
	struct calls calls;
	struct tail text; /* of the last message */
	struct ending ending;
	struct driver_usage usage;
	bool completed; /* turn.completed was said, and no failure after it */
	char *error;    /* owned: the last thing that went wrong, or NULL */
};

/* ---- before the start ---- */

static bool thread_ok(const char *id)
{
	size_t n = strnlen(id, 65);
	if (n == 0 || n > 64 || *id == '-')
		return false;
	for (; *id; id++)
		if (!isalnum((unsigned char)*id) && *id != '-')
			return false;
	return true;
}

static int codex_check(const struct driver_spec *spec, struct err *e)
{
	if (spec->resume && !thread_ok(spec->resume))
		return err_set(e, -ENOEXEC, "resume: '%.80s' is no id of a thread", spec->resume);
	return launch_check(spec, e);
}

static int codex_command(const struct driver_spec *spec, struct driver_command *ret, struct err *e)
{
	int r = codex_check(spec, e);
	if (r < 0)
		return r;
	launch_arg(ret, spec->program);
	launch_arg(ret, "exec");
	if (spec->resume) {
		launch_arg(ret, "resume");
		launch_arg(ret, spec->resume);
	}
	launch_arg(ret, "--json");
	launch_agent(ret, spec);
	launch_arg(ret, "-"); /* the prompt is on stdin */
	return 0;
}

static struct driver_run *codex_open(const struct driver_spec *spec, struct event_sink *sink)
{
	struct driver_run *r = xnew(struct driver_run);
	r->sink = sink;
	r->prompt = xcalloc(spec->prompt_len + 1, 1);
	if (spec->prompt_len)
		memcpy(r->prompt, spec->prompt, spec->prompt_len);
	r->prompt_len = spec->prompt_len;
	r->resumed = spec->resume != NULL;
	r->usage.cost_usd = -1;
	return r;
}

static int codex_start(struct driver_run *r, struct buf *to_stdin, bool *ret_eof)
{
	auto_free char *prompt = take(r->prompt);
	int rc = buf_put(to_stdin, prompt, r->prompt_len);
	if (rc == 0)
		*ret_eof = true;
	return rc;
}

/* ---- items ---- */

/* What an item is called, what it does, and what of it a person wants to see. */
struct call_of {
	char name[CALLS_TEXT_MAX];
	const char *kind;
	char *title; /* owned */
};

/* false: it is no call. */
static bool call_of(const struct json *item, struct call_of *ret)
{
	const char *type = json_str(item, "type", "");
	if (strcmp(type, "command_execution") == 0) {
		(void)str_copy(ret->name, sizeof(ret->name), "shell");
		ret->kind = "execute";
		ret->title = emit_title(json_str(item, "command", ""));
	} else if (strcmp(type, "file_change") == 0) {
		const struct json *first = json_first(json_get(item, "changes"));
		auto_free char *what = xasprintf("%s %s", json_str(first, "kind", "change"),
		        emit_path(json_str(first, "path", "files")));
		(void)str_copy(ret->name, sizeof(ret->name), "apply_patch");
		ret->kind = "edit";
		ret->title = emit_title(what);
	} else if (strcmp(type, "mcp_tool_call") == 0) {
		auto_free char *name = xasprintf("mcp__%.100s__%.100s",
		        json_str(item, "server", "?"), json_str(item, "tool", "?"));
		(void)str_copy(ret->name, sizeof(ret->name), name);
		ret->kind = "other";
		ret->title = xstrdup(ret->name);
	} else {
		return false;
	}
	return true;
}

/* What it was asked to do, as the events' `input`. */
static void put_input(struct jw *w, const struct json *item)
{
	static const char *const members[] = {"command", "changes"};
	if (json_is_object(json_get(item, "arguments"))) {
		jw_tree(w, "input", json_get(item, "arguments"));
		return;
	}
	jw_open(w, "input", '{');
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		if (json_get(item, members[i]))
			jw_tree(w, members[i], json_get(item, members[i]));
	jw_close(w, '}');
}

static bool started(struct driver_run *r, const struct json *item)
{
	const char *id = json_str(item, "id", NULL);
	struct call_of call = {0};
	if (!calls_text_ok(id) || !call_of(item, &call))
		return false;
	auto_free char *title = call.title;
	if (!calls_text_ok(call.name) || !calls_start(&r->calls, id, call.name))
		return false;
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "callId", id);
	jw_str(&w, "name", call.name);
	jw_str(&w, "kind", call.kind);
	put_input(&w, item);
	jw_str(&w, "title", title);
	return emit_members(r->sink, EVENT_TOOL_CALL, &b);
}

/* The text of an MCP server's answer, or of its failure. */
static void put_answer(struct buf *to, const struct json *item)
{
	const struct json *content = json_get(json_get(item, "result"), "content");
	if (json_is_object(json_get(item, "error")))
		buf_puts(to, json_str(json_get(item, "error"), "message", ""));
	if (!json_is_array(content))
		return;
	for (const struct json *c = json_first(content); c; c = json_next(c)) {
		if (to->len)
			buf_putc(to, '\n');
		const char *text = json_str(c, "text", NULL);
		if (text)
			buf_puts(to, text);
		else
			buf_printf(to, "[%.40s]", json_str(c, "type", "?"));
	}
}

static bool emit_result(struct driver_run *r, const struct json *item, const char *id)
{
	auto_buf struct buf output = EMIT_BUF, b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	double code;
	buf_puts(&output, json_str(item, "aggregated_output", ""));
	put_answer(&output, item);
	if (output.failed)
		return false;
	jw_str(&w, "callId", id);
	jw_str(&w, "name", calls_name(&r->calls, id));
	jw_bool(&w, "ok", strcmp(json_str(item, "status", ""), "completed") == 0);
	jw_str(&w, "output", output.p ? output.p : "");
	if (json_number(json_get(item, "exit_code"), &code))
		jw_int(&w, "exitCode", json_int(item, "exit_code", 0));
	return emit_members(r->sink, EVENT_TOOL_RESULT, &b);
}

static bool emit_changes(struct driver_run *r, const struct json *item)
{
	static const char *const kinds[][2] = {
	        {"add", "add"}, {"update", "edit"}, {"delete", "delete"}};
	const struct json *changes = json_get(item, "changes");
	bool all = true;
	if (!json_is_array(changes) || strcmp(json_str(item, "status", ""), "completed") != 0)
		return true;
	for (const struct json *c = json_first(changes); c; c = json_next(c)) {
		const char *path = json_str(c, "path", NULL), *kind = json_str(c, "kind", "");
		const char *change = NULL;
		for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
			if (strcmp(kind, kinds[i][0]) == 0)
				change = kinds[i][1];
		if (!path || !change) {
			all = false;
			continue;
		}
		auto_buf struct buf b = EMIT_BUF;
		struct jw w = JW_INIT(&b);
		jw_str(&w, "path", emit_path(path));
		jw_str(&w, "change", change);
		all &= emit_members(r->sink, EVENT_FILE_CHANGED, &b);
	}
	return all;
}

static bool call_done(struct driver_run *r, const struct json *item)
{
	const char *id = json_str(item, "id", NULL);
	/* One that was over at once was never said to begin. */
	if (!calls_text_ok(id) || (!calls_name(&r->calls, id) && !started(r, item)))
		return false;
	bool whole = emit_result(r, item, id);
	if (whole)
		calls_finish(&r->calls, id);
	return emit_changes(r, item) && whole;
}

static bool completed(struct driver_run *r, const struct json *item)
{
	const char *type = json_str(item, "type", ""), *id = json_str(item, "id", NULL);
	const char *text = json_str(item, "text", NULL);
	if (id && !calls_text_ok(id))
		id = NULL;
	if (strcmp(type, "agent_message") == 0 && text) {
		tail_clear(&r->text);
		tail_add(&r->text, text, strlen(text));
		return emit_text(r->sink, EVENT_AGENT_MESSAGE, text, strlen(text), false, id, NULL);
	}
	if (strcmp(type, "reasoning") == 0 && text)
		return emit_text(
		        r->sink, EVENT_AGENT_THINKING, text, strlen(text), false, id, NULL);
	if (strcmp(type, "error") == 0 && json_str(item, "message", NULL)) { /* a warning */
		emit_error(r->sink, json_str(item, "message", ""), "warning", true);
		return true;
	}
	return call_done(r, item);
}

/* ---- turns ---- */

/* "Reconnecting... 1/5 (why)" is not the end; what is comes again as turn.failed. */
static bool error_line(struct driver_run *r, const struct json *line)
{
	const char *text = json_str(line, "message", NULL);
	if (!text)
		return false;
	if (strncmp(text, "Reconnecting", 12) == 0) {
		emit_error(r->sink, text, "api_retry", true);
	} else {
		free(r->error);
		r->error = xstrdup(text);
	}
	return true;
}

static bool turn_failed(struct driver_run *r, const struct json *line)
{
	const char *text = json_str(json_get(line, "error"), "message", NULL);
	if (!text)
		return false;
	free(r->error);
	r->error = xstrdup(text);
	r->completed = false;
	emit_error(r->sink, text, "turn_failed", false);
	return true;
}

/* The counts are those of the whole conversation: of one that goes on, what this run used is not
 * known here.  Cached tokens are among the input. */
static bool turn_completed(struct driver_run *r, const struct json *line)
{
	const struct json *u = json_get(line, "usage");
	r->completed = true;
	free(r->error);
	r->error = NULL;
	if (r->resumed || !json_is_object(u))
		return true;
	r->usage.cached_tokens = json_int(u, "cached_input_tokens", 0);
	r->usage.input_tokens = json_int(u, "input_tokens", 0);
	r->usage.output_tokens = json_int(u, "output_tokens", 0);
	r->usage.turns = 1;
	emit_usage(r->sink, &r->usage);
	return true;
}

static bool dispatch(struct driver_run *r, const struct json *line)
{
	const char *type = json_str(line, "type", "");
	const char *thread = json_str(line, "thread_id", NULL);
	if (strcmp(type, "thread.started") == 0 && thread && thread_ok(thread)) {
		free(r->thread);
		r->thread = xstrdup(thread);
		return true;
	}
	if (strcmp(type, "item.started") == 0)
		return started(r, json_get(line, "item"));
	if (strcmp(type, "item.completed") == 0)
		return completed(r, json_get(line, "item"));
	if (strcmp(type, "turn.completed") == 0)
		return turn_completed(r, line);
	if (strcmp(type, "turn.failed") == 0)
		return turn_failed(r, line);
	if (strcmp(type, "error") == 0)
		return error_line(r, line);
	return strcmp(type, "turn.started") == 0;
}

static void codex_line(struct driver_run *r, const char *p, size_t n, bool whole,
        struct buf *to_stdin, bool *ret_eof)
{
	(void)to_stdin, (void)ret_eof; /* stdin was closed after the prompt */
	if (n == 0)
		return;
	auto_json struct json *line = whole ? json_parse(p, n, NULL) : NULL;
	bool understood = json_is_object(line) && dispatch(r, line);
	/* A string of the tree ends at its first NUL, so the line has more than the events say. */
	if (!understood || memmem(p, n, "\\u0000", 6))
		emit_raw(r->sink, NULL, p, n, !whole);
}

static void codex_error_line(struct driver_run *r, const char *p, size_t n)
{
	static const char lost[] = "no rollout found", reads[] = "Reading prompt from stdin...";
	if (n == sizeof(reads) - 1 && memcmp(p, reads, n) == 0)
		return;
	r->lost = r->lost || (r->resumed && memmem(p, n, lost, sizeof(lost) - 1));
	ending_error_line(&r->ending, p, n);
	emit_raw(r->sink, "stderr", p, n, false);
}

static bool codex_interrupt(struct driver_run *r, struct buf *to_stdin)
{
	(void)r, (void)to_stdin;
	return false; /* signal it */
}

/* ---- the end ---- */

static void codex_end(struct driver_run *r, const struct driver_exit *x, struct driver_outcome *ret)
{
	ret->tool_calls = r->calls.total;
	calls_close_all(&r->calls, r->sink, "The agent ended before the tool answered.");
	auto_free char *how = ending_text(&r->ending, x);
	/* After its last word it may be killed by whoever waits no longer (a signal, or 128 + N).
	 */
	if (r->completed && x->code > 0 && x->code <= 128)
		ret->error = xasprintf("codex completed its turn and then %s", how);
	else if (!r->completed)
		ret->error =
		        r->error ? take(r->error) : xasprintf("codex %s, without a result", how);
	ret->status = ret->error ? DRIVER_FAILED : DRIVER_SUCCEEDED;
	ret->usage = r->usage;
	ret->final_text = tail_take(&r->text);
	ret->resume_lost = r->lost && !r->thread;
	ret->resume = take(r->thread);
}

static void codex_close(struct driver_run *r)
{
	if (!r)
		return;
	free(r->prompt);
	free(r->thread);
	free(r->error);
	calls_done(&r->calls);
	tail_done(&r->text);
	free(r);
}

const struct driver driver_codex = {
        .name = "codex",
        .check = codex_check,
        .command = codex_command,
        .open = codex_open,
        .start = codex_start,
        .line = codex_line,
        .error_line = codex_error_line,
        .flush = NULL,
        .interrupt = codex_interrupt,
        .answer = NULL,
        .input = NULL,
        .end = codex_end,
        .close = codex_close,
};
