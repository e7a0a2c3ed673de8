#include "drivers/acp.h"
#include "base/limits.h"
#include "base/mem.h"
#include "drivers/emit.h"

#include <string.h>

/*
 * Theory of operation.  We ask (initialize, session/new, session/prompt: see
 * acp_session.c), the agent tells what it does as session/update notifications
 * and asks back for permission, and the answer to session/prompt ends the turn.
 * Then stdin is closed; not every agent exits by itself then.
 *
 * A line is understood (events), known to carry nothing (dropped: see
 * acp_drops), or passed on whole as agent.raw.
 */

/* ---- life ---- */

static char **copy_list(const char *const *list)
{
	size_t n = 0;
	while (list && list[n])
		n++;
	if (!n)
		return NULL;
	char **copy = xcalloc(n + 1, sizeof(*copy));
	for (size_t i = 0; i < n; i++)
		copy[i] = xstrdup(list[i]);
	return copy;
}

static void free_list(char **list)
{
	for (char **s = list; s && *s; s++)
		free(*s);
	free(list);
}

static char *copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

static struct driver_run *acp_open(
        const struct driver *d, const struct driver_spec *spec, struct event_sink *sink)
{
	(void)d;
	struct driver_run *r = xnew(struct driver_run);
	bool asks = spec->permissions != PERMISSIONS_AUTO;
	r->sink = sink;
	acp_note_prompt(r, spec->prompt ? spec->prompt : "", spec->prompt_len);
	r->asked_for = xstrndup(r->prompts[0].p, r->prompts[0].n);
	r->system = spec->instructions ? NULL : copy(spec->system_prompt);
	r->model = spec->model_flag ? NULL : copy(spec->model);
	r->resume = copy(spec->resume);
	r->mode = copy(asks && spec->ask_mode ? spec->ask_mode : spec->mode);
	r->auth = copy(spec->auth_method);
	r->mcp = acp_mcp_text(spec);
	for (size_t i = 0; i < spec->nmcp; i++)
		r->mcp_http |= spec->mcp[i].url != NULL;
	r->failure_text = copy_list(spec->failure_text);
	r->usage_sums = spec->usage_sums;
	r->files = spec->acp_files;
	r->serves_terminals = spec->acp_terminals;
	r->permissions = spec->permissions;
	r->usage.cost_usd = r->cost = -1;
	if (spec->live)
		acp_take_live(r, spec->live);
	return r;
}

static void acp_close(struct driver_run *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->nprompts; i++)
		free(r->prompts[i].p);
	free(r->prompts);
	free(r->system);
	free(r->model);
	free(r->model_config);
	free(r->resume);
	free(r->mode);
	free(r->auth);
	free(r->mcp);
	free_list(r->failure_text);
	free(r->session);
	free(r->asked_for);
	calls_done(&r->calls);
	acp_tools_done(r);
	acp_permissions_done(r);
	acp_served_done(r);
	tail_done(&r->text);
	tail_done(&r->piece);
	free(r->message);
	free(r->error);
	free(r);
}

/* ---- stdin ---- */

static int acp_start(struct driver_run *r, struct buf *to_stdin, bool *ret_eof)
{
	if (r->waited)
		acp_prompt(r, to_stdin);
	else
		acp_initialize(r, to_stdin);
	*ret_eof = false;
	return to_stdin->failed;
}

static bool acp_interrupt(struct driver_run *r, struct buf *to_stdin)
{
	if (r->state != ACP_PROMPT)
		return false;
	acp_permissions_cancel(r, to_stdin);
	r->interrupting = true;
	acp_cancel(r, to_stdin);
	return to_stdin->failed == 0;
}

static bool acp_input(struct driver_run *r, const char *p, size_t n, struct buf *to_stdin)
{
	(void)to_stdin; /* written when this turn has ended */
	if (r->state == ACP_CLOSED || r->interrupting || r->nprompts == ACP_ASKED_MAX)
		return false;
	acp_note_prompt(r, p, n);
	return true;
}

/* ---- updates ---- */

static bool same(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* A piece of a message whose id is another than the last one's, or that comes after a tool call,
 * begins a new message. */
static void note_text(struct driver_run *r, const char *text, size_t n, const char *id)
{
	bool other = id && r->message && !same(id, r->message);
	if (r->text_ended || other)
		tail_clear(&r->text);
	r->text_ended = false;
	if (id && (other || !r->message)) {
		free(r->message);
		r->message = xstrdup(id);
	}
	tail_add(&r->text, text, n);
	tail_clear(&r->piece);
	tail_add(&r->piece, text, n);
}

/* Content that is no text is told by its type, so that the line need not be raw. */
static bool chunk(struct driver_run *r, const struct json *update, enum event_type t)
{
	const struct json *content = json_get(update, "content");
	const char *text = json_str(content, "text", NULL),
	           *id = json_str(update, "messageId", NULL);
	if (!text || !same(json_str(content, "type", ""), "text"))
		return false;
	acp_usage_piece(r, json_path(update, "_meta", "usage", NULL));
	size_t n = strlen(text);
	if (n == 0)
		return true;
	if (id && !calls_text_ok(id))
		id = NULL;
	if (t == EVENT_AGENT_MESSAGE)
		note_text(r, text, n, id);
	if (r->history) /* not now, but in case that nothing follows (acp_stopped) */
		return true;
	acp_tools_tell(r, NULL);
	r->did = true;
	r->refused = false;
	return emit_text(r->sink, t, text, n, true, id, NULL);
}

static bool plan(struct driver_run *r, const struct json *update)
{
	const struct json *entries = json_get(update, "entries");
	if (!json_is_array(entries))
		return false;
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_open(&w, "entries", '[');
	for (const struct json *e = json_first(entries); e; e = json_next(e)) {
		jw_open(&w, NULL, '{');
		jw_str(&w, "text", json_str(e, "content", ""));
		jw_str(&w, "status", json_str(e, "status", "pending"));
		jw_close(&w, '}');
	}
	jw_close(&w, ']');
	return emit_members(r->sink, EVENT_PLAN_UPDATED, &b);
}

/* How full the context is says nothing to the run; what the session has cost does. */
static bool usage_update(struct driver_run *r, const struct json *update)
{
	const struct json *cost = json_get(update, "cost");
	if (cost && same(json_str(cost, "currency", "USD"), "USD"))
		r->cost = json_num(cost, "amount", -1);
	return true;
}

/* Updates that are known and say nothing that an event does not say better. */
bool acp_drops(const char *kind)
{
	static const char *const nothing[] = {
	        "available_commands_update", "current_mode_update", "config_option_update",
	        "session_info_update", "user_message_chunk", /* our own words, or old ones */
	};
	for (size_t i = 0; i < ARRAY_LEN(nothing); i++)
		if (same(kind, nothing[i]))
			return true;
	return false;
}

/* What a session that is gone on with has been: told before the answer to session/load, by some
 * after it.  Words of the user that are not ours begin it there, and what no conversation has ends
 * it. */
static bool old_news(struct driver_run *r, const char *kind, const struct json *update)
{
	static const char *const told[] = {"user_message_chunk", "agent_message_chunk",
	        "agent_thought_chunk", "tool_call", "tool_call_update", "plan"};
	if (!r->resume || r->state < ACP_SESSION || r->state == ACP_CLOSED)
		return false;
	if (r->state != ACP_PROMPT)
		return true;
	const char *text = json_str(json_get(update, "content"), "text", "");
	if (same(kind, told[0]) && !same(text, r->asked_for) && !r->did) {
		r->history = true;
		tail_clear(&r->text);
	}
	for (size_t i = 0; i < ARRAY_LEN(told); i++)
		if (same(kind, told[i]))
			return r->history && !same(kind, told[1]);
	if (r->history)
		tail_clear(&r->text);
	r->history = false;
	return false;
}

static bool update(struct driver_run *r, const struct json *params)
{
	const struct json *u = json_get(params, "update");
	const char *kind = json_str(u, "sessionUpdate", "");
	const char *session = json_str(params, "sessionId", NULL);
	if (r->session && session && !same(session, r->session))
		return false;
	if (old_news(r, kind, u))
		return true;
	if (same(kind, "agent_message_chunk"))
		return chunk(r, u, EVENT_AGENT_MESSAGE);
	if (same(kind, "agent_thought_chunk"))
		return chunk(r, u, EVENT_AGENT_THINKING);
	if (same(kind, "tool_call") || same(kind, "tool_call_update"))
		return acp_tool_update(r, u);
	if (acp_drops(kind))
		return true;
	acp_tools_tell(r, NULL);
	if (same(kind, "plan"))
		return plan(r, u);
	return same(kind, "usage_update") && usage_update(r, u);
}

/* ---- lines of stdout ---- */

static bool dispatch(struct driver_run *r, const struct json *line, struct buf *to_stdin)
{
	const char *method = json_str(line, "method", NULL);
	if (!method)
		return acp_answered(r, line, to_stdin);
	if (json_get(line, "id"))
		return acp_request(r, line, to_stdin);
	if (same(method, "session/update"))
		return update(r, json_get(line, "params"));
	if (same(method, "$/cancel_request"))
		return acp_withdrawn(r, json_get(line, "params"), to_stdin);
	return acp_served(r, method, json_get(line, "params"));
}

static void acp_line(struct driver_run *r, const char *p, size_t n, bool whole,
        struct buf *to_stdin, bool *ret_eof)
{
	if (n == 0)
		return;
	auto_json struct json *line = whole ? json_parse(p, n, NULL) : NULL;
	bool open = r->state != ACP_CLOSED;
	bool understood = json_is_object(line) && dispatch(r, line, to_stdin);
	emit_unsaid(r->sink, understood, p, n, whole);
	if (open && r->state == ACP_CLOSED)
		*ret_eof = true;
}

static void acp_error_line(struct driver_run *r, const char *p, size_t n)
{
	ending_error_line(&r->ending, p, n);
	emit_raw(r->sink, "stderr", p, n, false);
}

const struct driver driver_acp = {
        .name = "acp",
        .can = CAN(RESUME) | CAN(INPUT) | CAN(INTERRUPT) | CAN(ASK) | CAN(DENY) | CAN(QUESTIONS) |
               CAN(SYSTEM_PROMPT) | CAN(MODEL) | CAN(MCP_STDIO) | CAN(MCP_HTTP) | CAN(THINKING) |
               CAN(PLAN) | CAN(COST) | CAN(USAGE) | CAN(WARM),
        .over_at_eof = true,
        .check = acp_check,
        .command = acp_command,
        .open = acp_open,
        .start = acp_start,
        .line = acp_line,
        .error_line = acp_error_line,
        .interrupt = acp_interrupt,
        .answer = acp_answer,
        .reply = acp_reply,
        .input = acp_input,
        .rest = acp_rest,
        .idle = acp_idle,
        .end = acp_end,
        .close = acp_close,
};
