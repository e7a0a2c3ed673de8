/*
 * codex_exec.c - Codex (`codex exec --json`): one process a run, JSON lines out.
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
#include "drivers/codex.h"
#include "drivers/emit.h"
#include "drivers/ending.h"
#include "drivers/launch.h"
#include "drivers/prompt.h"
#include "drivers/usage.h"

#include <string.h>

struct driver_run {
	struct codex_items items;
	struct prompt prompt; /* until it is written */
	bool resumed, lost;
	char *thread; /* owned: id of the conversation, or NULL */
	struct ending ending;
	struct driver_usage usage;
	bool completed; /* turn.completed was said, and no failure after it */
	char *error;    /* owned: the last thing that went wrong, or NULL */
};

/* ---- before the start ---- */

static int codex_check(const struct driver_spec *spec, struct err *e)
{
	if (spec->resume && !launch_id_ok(spec->resume))
		return err_set(e, -ENOEXEC, "resume: '%.80s' is no id of a thread", spec->resume);
	return launch_check(&driver_codex_exec, spec, e);
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
	launch_arg(ret, "--skip-git-repo-check");
	launch_arg(ret, "--dangerously-bypass-approvals-and-sandbox"); /* the jail is the sandbox */
	launch_agent(ret, spec);
	launch_arg(ret, "-"); /* the prompt is on stdin */
	return 0;
}

static struct driver_run *codex_open(
        const struct driver *d, const struct driver_spec *spec, struct event_sink *sink)
{
	(void)d;
	struct driver_run *r = xnew(struct driver_run);
	r->items.sink = sink;
	r->prompt = prompt_of(spec);
	r->resumed = spec->resume != NULL;
	r->usage.cost_usd = -1;
	return r;
}

static int codex_start(struct driver_run *r, struct buf *to_stdin, bool *ret_eof)
{
	return prompt_is_stdin(&r->prompt, to_stdin, ret_eof);
}

/* ---- turns ---- */

/* "Reconnecting... 1/5 (why)" is not the end; what is comes again as turn.failed. */
static bool error_line(struct driver_run *r, const struct json *line)
{
	const char *text = json_str(line, "message", NULL);
	if (!text)
		return false;
	if (strncmp(text, "Reconnecting", 12) == 0) {
		emit_error(r->items.sink, text, "api_retry", true);
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
	emit_error(r->items.sink, text, "turn_failed", false);
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
	r->usage.cached_tokens = usage_tokens(u, "cached_input_tokens");
	r->usage.input_tokens = usage_tokens(u, "input_tokens");
	r->usage.output_tokens = usage_tokens(u, "output_tokens");
	r->usage.turns = 1;
	emit_usage(r->items.sink, &r->usage);
	return true;
}

static bool dispatch(struct driver_run *r, const struct json *line)
{
	const char *type = json_str(line, "type", "");
	const char *thread = json_str(line, "thread_id", NULL);
	if (strcmp(type, "thread.started") == 0 && launch_id_ok(thread)) {
		free(r->thread);
		r->thread = xstrdup(thread);
		return true;
	}
	if (strcmp(type, "item.started") == 0)
		return codex_item_started(&r->items, json_get(line, "item"));
	/* A list of things to do is told anew with each change. */
	if (strcmp(type, "item.updated") == 0)
		return codex_item_started(&r->items, json_get(line, "item"));
	if (strcmp(type, "item.completed") == 0)
		return codex_item_completed(&r->items, json_get(line, "item"));
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
	emit_unsaid(r->items.sink, understood, p, n, whole);
}

static void codex_error_line(struct driver_run *r, const char *p, size_t n)
{
	static const char lost[] = "no rollout found", reads[] = "Reading ";
	static const char from[] = " from stdin..."; /* the prompt, or additional input */
	if (n > sizeof(reads) + sizeof(from) && memcmp(p, reads, sizeof(reads) - 1) == 0 &&
	        memcmp(p + n - (sizeof(from) - 1), from, sizeof(from) - 1) == 0)
		return;
	r->lost = r->lost || (r->resumed && memmem(p, n, lost, sizeof(lost) - 1));
	ending_error_line(&r->ending, p, n);
	emit_raw(r->items.sink, "stderr", p, n, false);
}

/* ---- the end ---- */

static void codex_end(struct driver_run *r, const struct driver_exit *x, struct driver_outcome *ret)
{
	ret->tool_calls = r->items.calls.total;
	calls_close_all(
	        &r->items.calls, r->items.sink, "The agent ended before the tool answered.");
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
	ret->final_text = tail_take(&r->items.text);
	ret->resume_lost = r->lost && !r->thread;
	ret->resume = take(r->thread);
}

static void codex_close(struct driver_run *r)
{
	if (!r)
		return;
	prompt_done(&r->prompt);
	free(r->thread);
	free(r->error);
	codex_items_done(&r->items);
	free(r);
}

const struct driver driver_codex_exec = {
        .name = "codex-exec",
        .can = CAN(RESUME) | CAN(SYSTEM_PROMPT) | CAN(MODEL) | CAN(THINKING) | CAN(PLAN) |
               CAN(USAGE),
        .can_if_told = CAN(SYSTEM_PROMPT) | CAN(MODEL),
        .check = codex_check,
        .command = codex_command,
        .open = codex_open,
        .start = codex_start,
        .line = codex_line,
        .error_line = codex_error_line,
        .end = codex_end,
        .close = codex_close,
};
