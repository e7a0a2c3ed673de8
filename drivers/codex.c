#include "base/mem.h"
#include "drivers/codex_server.h"
#include "drivers/emit.h"
#include "drivers/launch.h"
#include "drivers/usage.h"

#include <string.h>

/*
 * Theory of operation.  initialize and the thread (a new one, or the session's)
 * go out at once; its answer brings the thread's id, and then the prompt goes
 * out as a turn.  Codex tells items and usage, asks where it is told to, and
 * says turn/completed.  A message of the user joins the turn that runs
 * (turn/steer); where that is refused, or no turn runs, it is a turn of its own
 * after that one.  With nothing left to say stdin is closed and Codex exits.
 *
 * Only turn/completed says how a turn ended: an error may be one that it
 * recovers from, and at the end of stdin, or on SIGTERM, it exits with 0 in
 * mid-turn.  A line is understood, known to carry nothing (drops), or passed on
 * whole as agent.raw; so is what subagents say, in threads of their own.
 */

/* ---- life ---- */

/* Of a Codex that had another run before, see codex_rest. */
static void take_live(struct driver_run *r, const char *live)
{
	auto_json struct json *j = json_parse(live, strlen(live), NULL);
	r->waited = r->have_base = true;
	r->thread = xstrdup(json_str(j, "thread", ""));
	r->last_id = (int)json_int(j, "id", 0);
	r->base = usage_of(j);
}

static struct driver_run *codex_open(
        const struct driver *d, const struct driver_spec *spec, struct event_sink *sink)
{
	(void)d;
	struct driver_run *r = xnew(struct driver_run);
	r->items.sink = sink;
	r->permissions = spec->permissions;
	r->resume = spec->resume ? xstrdup(spec->resume) : NULL;
	r->have_base = !spec->resume;
	if (spec->live)
		take_live(r, spec->live);
	else
		codex_put_start(r, spec);
	r->waiting[r->nwaiting++] = xstrndup(spec->prompt ? spec->prompt : "", spec->prompt_len);
	return r;
}

static void codex_close(struct driver_run *r)
{
	if (!r)
		return;
	codex_items_done(&r->items);
	codex_ask_done(r);
	buf_done(&r->start);
	while (r->nwaiting)
		free(r->waiting[--r->nwaiting]);
	for (size_t i = 0; i < r->nsent; i++)
		free(r->sent[i].text);
	free(r->resume);
	free(r->thread);
	free(r->turn);
	free(r->ended);
	free(r->error);
	free(r);
}

static int codex_start(struct driver_run *r, struct buf *to_stdin, bool *ret_eof)
{
	if (r->waited) {
		*ret_eof = false;
		return codex_put_turn(r, to_stdin) ? 0 : -ENOBUFS;
	}
	int rc = r->start.failed ? r->start.failed : buf_put(to_stdin, r->start.p, r->start.len);
	buf_done(&r->start);
	if (rc == 0)
		*ret_eof = false;
	return rc;
}

/* ---- answers to our requests ---- */

static void thread_begun(
        struct driver_run *r, const struct json *line, struct buf *to_stdin, bool *ret_eof)
{
	const char *id = json_str(json_path(line, "result", "thread", NULL), "id", NULL);
	if (!launch_id_ok(id)) {
		codex_fail(r, "codex told no id of the conversation", "protocol", ret_eof);
		return;
	}
	free(r->thread);
	r->thread = xstrdup(id);
	codex_go_on(r, to_stdin, ret_eof);
}

/* A message that could not join the turn waits for the next one. */
static void steered(struct driver_run *r, char *text, bool refused)
{
	if (!refused || !text)
		free(text);
	else if (r->nwaiting < CODEX_INPUT_MAX)
		r->waiting[r->nwaiting++] = text;
	else {
		emit_error(r->items.sink, "a message was lost: too many of them wait",
		        "message_lost", false);
		free(text);
	}
}

static void request_failed(
        struct driver_run *r, enum codex_request what, const char *why, bool *ret_eof)
{
	if (what == CODEX_INTERRUPT) {
		emit_error(r->items.sink, why, "interrupt_failed", true);
		return;
	}
	r->lost = what == CODEX_THREAD && r->resume && strstr(why, "no rollout found");
	codex_fail(r, why, r->lost ? "resume_lost" : "request_failed", ret_eof);
}

static bool on_answer(
        struct driver_run *r, const struct json *line, struct buf *to_stdin, bool *ret_eof)
{
	enum codex_request what;
	char *text = NULL;
	if (!codex_sent_take(r, json_get(line, "id"), &what, &text))
		return false;
	const struct json *error = json_get(line, "error");
	bool refused = json_is_object(error);
	if (what == CODEX_STEER) {
		steered(r, text, refused);
		codex_go_on(r, to_stdin, ret_eof);
	} else if (refused) {
		request_failed(r, what, json_str(error, "message", "refused"), ret_eof);
	} else if (what == CODEX_THREAD) {
		thread_begun(r, line, to_stdin, ret_eof);
	} else if (what == CODEX_TURN) {
		codex_turn_begun(r, json_path(line, "result", "turn", NULL), to_stdin);
	}
	return true;
}

/* ---- lines ---- */

static void codex_line(struct driver_run *r, const char *p, size_t n, bool whole,
        struct buf *to_stdin, bool *ret_eof)
{
	if (n == 0)
		return;
	auto_json struct json *line = whole ? json_parse(p, n, NULL) : NULL;
	bool understood = false;
	if (json_is_object(line) && !json_get(line, "method"))
		understood = on_answer(r, line, to_stdin, ret_eof);
	else if (json_is_object(line) && json_get(line, "id"))
		understood = codex_ask(r, line, to_stdin);
	else if (json_is_object(line))
		understood = codex_notification(r, line, to_stdin, ret_eof);
	emit_unsaid(r->items.sink, understood, p, n, whole);
}

static void codex_error_line(struct driver_run *r, const char *p, size_t n)
{
	ending_error_line(&r->ending, p, n);
	emit_raw(r->items.sink, "stderr", p, n, false);
}

/* ---- what the user says meanwhile ---- */

static bool codex_input(struct driver_run *r, const char *p, size_t n, struct buf *to_stdin)
{
	if (r->closing || r->interrupting || memchr(p, '\0', n))
		return false;
	auto_free char *text = xstrndup(p, n);
	if (r->turn)
		return codex_put_steer(r, text, to_stdin);
	if (r->nwaiting == CODEX_INPUT_MAX)
		return false;
	r->waiting[r->nwaiting++] = take(text);
	return true;
}

static bool codex_interrupt(struct driver_run *r, struct buf *to_stdin)
{
	if (r->closing || r->interrupting)
		return false;
	r->interrupting = true;
	return !r->turn || codex_put_interrupt(r, to_stdin);
}

/* ---- the end ---- */

/* NULL: it succeeded; else why not, owned. */
static char *failure(struct driver_run *r, const struct driver_exit *x)
{
	auto_free char *how = ending_text(&r->ending, x);
	if (r->error)
		return take(r->error);
	if (!r->completed)
		return xasprintf("codex %s, without a result", how);
	/* After its last word it may be killed by whoever waits no longer (a signal, or 128 + N);
	 * a small code is its own word that something is wrong. */
	if (x->code > 0 && x->code <= 128)
		return xasprintf("codex completed its turn and then %s", how);
	return NULL;
}

static void codex_end(struct driver_run *r, const struct driver_exit *x, struct driver_outcome *ret)
{
	/* A turn that began, or one that the user's words wait for, and none of them completed. */
	bool cut = !r->closing;
	ret->tool_calls = r->items.calls.total;
	calls_close_all(
	        &r->items.calls, r->items.sink, "The agent ended before the tool answered.");
	if (cut)
		r->completed = false;
	ret->error = failure(r, x);
	ret->status = ret->error ? DRIVER_FAILED : DRIVER_SUCCEEDED;
	if (cut && !r->interrupting)
		emit_error(r->items.sink, ret->error, "no_result", false);
	codex_tell_usage(r);
	ret->usage = r->told;
	ret->usage.cost_usd = -1;
	ret->final_text = tail_take(&r->items.text);
	ret->resume_lost = r->lost;
	if (!r->lost)
		ret->resume = take(r->thread);
}

/* ---- between two runs ---- */

static char *codex_rest(const struct driver_run *r)
{
	if (!r->completed || r->error || r->interrupting || r->nasked || r->nsent || r->remembers ||
	        !r->thread)
		return NULL;
	auto_buf struct buf b = BUF_INIT(4096);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_str(&w, "thread", r->thread);
	jw_int(&w, "id", r->last_id);
	struct driver_usage sums = r->base;
	usage_add(&sums, &r->usage);
	sums.cost_usd = -1;
	usage_put(&w, &sums);
	jw_close(&w, '}');
	return b.failed ? NULL : buf_take(&b);
}

const struct driver driver_codex = {
        .name = "codex",
        .can = CAN(RESUME) | CAN(INPUT) | CAN(INTERRUPT) | CAN(ASK) | CAN(DENY) |
               CAN(SYSTEM_PROMPT) | CAN(MODEL) | CAN(MCP_STDIO) | CAN(MCP_HTTP) | CAN(THINKING) |
               CAN(PLAN) | CAN(USAGE) | CAN(WARM),
        .check = codex_server_check,
        .command = codex_server_command,
        .open = codex_open,
        .start = codex_start,
        .line = codex_line,
        .error_line = codex_error_line,
        .turns = codex_turns,
        .interrupt = codex_interrupt,
        .answer = codex_answer,
        .input = codex_input,
        .rest = codex_rest,
        .idle = codex_idle,
        .end = codex_end,
        .close = codex_close,
};
