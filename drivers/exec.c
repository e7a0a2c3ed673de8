/*
 * exec.c - any command as an agent: the prompt on stdin, text or events on stdout.
 *
 * The command is the harness's, or an agent's that needs no driver of its own: its
 * agent.yaml says where the model and the system prompt go.
 *
 * A line of stdout that is a JSON object whose "type" is one of fields[] and
 * whose members have the right types is that event; only the members listed
 * are passed on, so a command cannot forge seq, run or an event that is not an
 * agent's to send.  Every other line is text: agent.message with delta true,
 * the lines of one read in one event.  docs/AGENTS.md describes it for those who
 * write such commands.
 */
#include "base/json.h"
#include "base/mem.h"
#include "drivers/calls.h"
#include "drivers/driver.h"
#include "drivers/emit.h"
#include "drivers/ending.h"
#include "drivers/launch.h"
#include "drivers/prompt.h"
#include "drivers/tail.h"

#include <string.h>

/* Lines of one read are gathered, and never more than this: an event stays small, and the envelope
 * of some 170 bytes is nothing beside it. */
enum { GATHER_MAX = 32 << 10 };

struct driver_run {
	struct event_sink *sink; /* borrowed: longer than the run */
	struct prompt prompt;    /* until it is written */
	struct calls calls;
	struct tail text;
	struct buf gathered; /* lines of text that wait for flush */
	struct ending ending;
	struct driver_usage usage;
	char *error; /* owned: message of the last error event, or NULL */
};

/* ---- before the start ---- */

static int check_command(const struct driver_spec *spec, struct err *e)
{
	if (!spec->command || !spec->command[0] || !*spec->command[0])
		return err_set(e, -ENOEXEC, "backend exec needs `command: [program, args...]`");
	for (const char *const *a = spec->command; *a; a++)
		if (strstr(*a, "{{prompt}}"))
			return err_set(e, -ENOEXEC,
			        "command: {{prompt}} is not put into arguments (they are public "
			        "and limited): "
			        "read it from stdin");
	return launch_check(&driver_exec, spec, e);
}

static int exec_check(const struct driver_spec *spec, struct err *e)
{
	return spec->program ? launch_check(&driver_exec, spec, e) : check_command(spec, e);
}

static int exec_command(const struct driver_spec *spec, struct driver_command *ret, struct err *e)
{
	int r = exec_check(spec, e);
	if (r < 0)
		return r;
	if (spec->program) {
		launch_arg(ret, spec->program);
		launch_agent(ret, spec);
	} else {
		launch_args(ret, spec->command);
	}
	return 0;
}

static struct driver_run *exec_open(
        const struct driver *d, const struct driver_spec *spec, struct event_sink *sink)
{
	(void)d;
	struct driver_run *r = xnew(struct driver_run);
	r->sink = sink;
	r->prompt = prompt_of(spec);
	r->usage.cost_usd = -1;
	r->gathered = (struct buf)BUF_INIT(LIMIT_LINE + 1);
	return r;
}

static int exec_start(struct driver_run *r, struct buf *to_stdin, bool *ret_eof)
{
	return prompt_is_stdin(&r->prompt, to_stdin, ret_eof);
}

/* ---- lines ---- */

enum kind { STR, BOOL, INT, NUM, ID, OBJ, ENTRIES };

/* What a command may say, member by member (docs/EVENTS.md). */
static const struct field {
	enum event_type event;
	const char *name;
	enum kind kind;
	bool required;
} fields[] = {
        {EVENT_AGENT_MESSAGE, "text", STR, true},
        {EVENT_AGENT_MESSAGE, "delta", BOOL, false},
        {EVENT_AGENT_MESSAGE, "messageId", STR, false},
        {EVENT_AGENT_THINKING, "text", STR, true},
        {EVENT_AGENT_THINKING, "delta", BOOL, false},
        {EVENT_TOOL_CALL, "callId", ID, true},
        {EVENT_TOOL_CALL, "name", ID, true},
        {EVENT_TOOL_CALL, "kind", STR, false},
        {EVENT_TOOL_CALL, "input", OBJ, false},
        {EVENT_TOOL_CALL, "title", STR, false},
        {EVENT_TOOL_UPDATE, "callId", ID, true},
        {EVENT_TOOL_UPDATE, "output", STR, true},
        {EVENT_TOOL_RESULT, "callId", ID, true},
        {EVENT_TOOL_RESULT, "name", ID, false},
        {EVENT_TOOL_RESULT, "ok", BOOL, true},
        {EVENT_TOOL_RESULT, "output", STR, false},
        {EVENT_TOOL_RESULT, "exitCode", INT, false},
        {EVENT_TOOL_RESULT, "truncated", BOOL, false},
        {EVENT_FILE_CHANGED, "path", STR, true},
        {EVENT_FILE_CHANGED, "change", STR, true},
        {EVENT_FILE_CHANGED, "diff", STR, false},
        {EVENT_PLAN_UPDATED, "entries", ENTRIES, true},
        {EVENT_USAGE, "inputTokens", INT, true},
        {EVENT_USAGE, "outputTokens", INT, true},
        {EVENT_USAGE, "cachedTokens", INT, false},
        {EVENT_USAGE, "costUsd", NUM, false},
        {EVENT_USAGE, "turns", INT, false},
        {EVENT_ERROR, "message", STR, true},
        {EVENT_ERROR, "code", STR, false},
        {EVENT_ERROR, "retryable", BOOL, false},
};

static bool entries_ok(const struct json *v)
{
	if (!json_is_array(v))
		return false;
	for (const struct json *it = json_first(v); it; it = json_next(it))
		if (!json_str(it, "text", NULL) || !json_str(it, "status", NULL))
			return false;
	return true;
}

static bool value_ok(enum kind kind, const struct json *v)
{
	bool b;
	double d;
	switch (kind) {
	case STR:
		return json_text(v) != NULL;
	case BOOL:
		return json_is_bool(v, &b);
	case INT: /* 2^53: beyond it a JSON number is no exact integer */
		return json_number(v, &d) && d >= -9007199254740992.0 && d <= 9007199254740992.0 &&
		       d == (double)(int64_t)d;
	case NUM:
		return json_number(v, &d);
	case ID:
		return calls_text_ok(json_text(v));
	case OBJ:
		return json_is_object(v);
	case ENTRIES:
		return entries_ok(v);
	}
	return false;
}

/* Writes the members of event t that j has.  false: one is missing or wrong, or t has none. */
static bool copy_members(struct jw *w, enum event_type t, const struct json *j)
{
	bool known = false;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		const struct field *f = &fields[i];
		if (f->event != t)
			continue;
		known = true;
		const struct json *v = json_get(j, f->name);
		if (!v && !f->required)
			continue;
		if (!v || !value_ok(f->kind, v))
			return false;
		jw_tree(w, f->name, v);
	}
	return known;
}

static void note_usage(struct driver_usage *u, const struct json *j)
{
	u->input_tokens = json_int(j, "inputTokens", 0);
	u->output_tokens = json_int(j, "outputTokens", 0);
	u->cached_tokens = json_int(j, "cachedTokens", 0);
	u->cost_usd = json_num(j, "costUsd", -1);
	u->turns = json_int(j, "turns", 0);
}

/* Keeps what the outcome needs.  false: the event contradicts an earlier one. */
static bool note_event(struct driver_run *r, enum event_type t, const struct json *j)
{
	const char *text = json_str(j, "text", ""), *id = json_str(j, "callId", "");
	if (t == EVENT_AGENT_MESSAGE) {
		tail_add(&r->text, text, strlen(text));
		if (!json_bool(j, "delta", false))
			tail_add(&r->text, "\n", 1);
	} else if (t == EVENT_TOOL_CALL) {
		return calls_start(&r->calls, id, json_str(j, "name", ""));
	} else if (t == EVENT_TOOL_RESULT) {
		calls_finish(&r->calls, id);
	} else if (t == EVENT_USAGE) {
		note_usage(&r->usage, j);
	} else if (t == EVENT_ERROR && !json_bool(j, "retryable", false)) {
		free(r->error);
		r->error = xstrdup(json_str(j, "message", ""));
	}
	return true;
}

static void exec_flush(struct driver_run *r)
{
	struct buf *b = &r->gathered;
	if (!b->len)
		return;
	/* Only a single line can be too large for one event: the newline was ours. */
	if (!emit_text(r->sink, EVENT_AGENT_MESSAGE, b->p, b->len, true, NULL, NULL))
		emit_raw(r->sink, NULL, b->p, b->len - 1, false);
	buf_clear(b);
	if (b->room > (1 << 20))
		buf_done(b); /* one huge line must not cost its memory for the whole run */
}

static void gather(struct driver_run *r, const char *p, size_t n)
{
	tail_add(&r->text, p, n);
	tail_add(&r->text, "\n", 1);
	if (r->gathered.len + n + 1 > GATHER_MAX)
		exec_flush(r);
	if (buf_put(&r->gathered, p, n) < 0 || buf_putc(&r->gathered, '\n') < 0) {
		buf_clear(&r->gathered);
		emit_raw(r->sink, NULL, p, n, false);
	}
}

static bool event_line(struct driver_run *r, const char *p, size_t n)
{
	if (n == 0 || *p != '{')
		return false;
	auto_json struct json *j = json_parse(p, n, NULL);
	const char *type = json_str(j, "type", NULL);
	int t = type ? event_by_name(type) : -1;
	if (t < 0)
		return false;
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	if (!copy_members(&w, (enum event_type)t, j) || b.failed ||
	        !note_event(r, (enum event_type)t, j))
		return false;
	exec_flush(r); /* what was said before it */
	return emit_members(r->sink, (enum event_type)t, &b);
}

static void exec_line(struct driver_run *r, const char *p, size_t n, bool whole,
        struct buf *to_stdin, bool *ret_eof)
{
	(void)to_stdin, (void)ret_eof; /* stdin was closed after the prompt */
	if (!whole) {
		exec_flush(r);
		tail_add(&r->text, p, n);
		emit_raw(r->sink, NULL, p, n, true);
	} else if (!event_line(r, p, n)) {
		gather(r, p, n);
	}
}

static void exec_error_line(struct driver_run *r, const char *p, size_t n)
{
	exec_flush(r);
	ending_error_line(&r->ending, p, n);
	emit_raw(r->sink, "stderr", p, n, false);
}

/* ---- the end ---- */

static char *final_text(struct driver_run *r)
{
	char *text = tail_take(&r->text);
	size_t n = strlen(text);
	if (n && text[n - 1] == '\n')
		text[n - 1] = '\0';
	return text;
}

static void exec_end(struct driver_run *r, const struct driver_exit *x, struct driver_outcome *ret)
{
	exec_flush(r);
	ret->tool_calls = r->calls.total;
	calls_close_all(&r->calls, r->sink, "The command ended before the tool answered.");
	ret->usage = r->usage;
	ret->final_text = final_text(r);
	if (x->code == 0 && x->sig == 0) {
		ret->status = DRIVER_SUCCEEDED;
		return;
	}
	ret->status = DRIVER_FAILED;
	auto_free char *how = ending_text(&r->ending, x);
	ret->error = r->error ? take(r->error) : xasprintf("the command %s", how);
}

static void exec_close(struct driver_run *r)
{
	if (!r)
		return;
	prompt_done(&r->prompt);
	free(r->error);
	calls_done(&r->calls);
	tail_done(&r->text);
	buf_done(&r->gathered);
	free(r);
}

const struct driver driver_exec = {
        .name = "exec",
        .can = CAN(SYSTEM_PROMPT) | CAN(MODEL) | CAN(THINKING) | CAN(PLAN) | CAN(COST) | CAN(USAGE),
        .can_if_told = CAN(SYSTEM_PROMPT) | CAN(MODEL),
        .check = exec_check,
        .command = exec_command,
        .open = exec_open,
        .start = exec_start,
        .line = exec_line,
        .error_line = exec_error_line,
        .flush = exec_flush,
        .end = exec_end,
        .close = exec_close,
};
