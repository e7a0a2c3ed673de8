#include "drivers/claude.h"
#include "base/limits.h"
#include "base/mem.h"
#include "drivers/emit.h"
#include "drivers/launch.h"

#include <string.h>

/*
 * Theory of operation.  The prompt goes in as one user message; Claude says
 * system/init, then a line for each block of each message (assistant: text,
 * thinking, tool_use; user: tool_result), then a result line.  Then stdin is
 * closed and it exits by itself once its subagents are done, each of which may
 * add another turn with its own init and result.  While it may still ask for
 * permission, stdin stays open for the answer.
 *
 * A line is understood (events), known to carry nothing (dropped: see
 * claude_drops), or passed on whole as agent.raw.
 */

/* ---- life ---- */

static void user_message(struct buf *to, const char *p, size_t n)
{
	struct jw w = JW_INIT(to);
	jw_open(&w, NULL, '{');
	jw_str(&w, "type", "user");
	jw_open(&w, "message", '{');
	jw_str(&w, "role", "user");
	jw_open(&w, "content", '[');
	jw_open(&w, NULL, '{');
	jw_str(&w, "type", "text");
	jw_bytes(&w, "text", p, n);
	jw_close(&w, '}');
	jw_close(&w, ']');
	jw_close(&w, '}');
	jw_null(&w, "parent_tool_use_id");
	jw_str(&w, "session_id", "");
	jw_close(&w, '}');
	buf_putc(to, '\n');
}

/* Of an agent that had another run before, see claude_rest. */
static void take_live(struct driver_run *r, const char *live)
{
	auto_json struct json *j = json_parse(live, strlen(live), NULL);
	claude_set(&r->session, json_str(j, "session", ""));
	r->cost_before = json_num(j, "cost", -1);
}

struct driver_run *claude_open(
        const struct driver *d, const struct driver_spec *spec, struct event_sink *sink)
{
	struct driver_run *r = xnew(struct driver_run);
	r->name = d->name;
	r->dialect = d->dialect;
	r->sink = sink;
	r->start = (struct buf)BUF_INIT((size_t)LIMIT_PROMPT * 6 + 4096); /* all of it escaped */
	if (d->dialect->greets && !spec->live)
		buf_puts(&r->start, "{\"type\":\"control_request\",\"request_id\":"
		                    "\"agentbox-initialize\",\"request\":{\"subtype\":"
		                    "\"initialize\",\"hooks\":null}}\n");
	user_message(&r->start, spec->prompt ? spec->prompt : "", spec->prompt_len);
	r->allow = claude_allow_list(spec);
	r->permissions = spec->permissions;
	r->asks = spec->permissions != PERMISSIONS_AUTO || claude_wants_asking(spec);
	r->resume = spec->resume ? xstrdup(spec->resume) : NULL;
	r->turn.cost_usd = -1;
	/* What a conversation that goes on has cost before is not known. */
	r->cost_before = spec->resume ? -1 : 0;
	r->before_known = !spec->resume;
	if (spec->live)
		take_live(r, spec->live);
	return r;
}

static void free_list(char **list)
{
	for (char **s = list; s && *s; s++)
		free(*s);
	free(list);
}

void claude_close(struct driver_run *r)
{
	if (!r)
		return;
	buf_done(&r->start);
	free_list(r->allow);
	free(r->resume);
	free(r->cwd);
	free(r->session);
	calls_done(&r->calls);
	tail_done(&r->text);
	free(r->message);
	claude_permission_done(r);
	claude_plan_done(r);
	free(r->result);
	free(r->error);
	free(r->fault);
	free(r);
}

/* ---- stdin ---- */

int claude_start(struct driver_run *r, struct buf *to_stdin, bool *ret_eof)
{
	int rc = r->start.failed ? r->start.failed : buf_put(to_stdin, r->start.p, r->start.len);
	buf_done(&r->start);
	if (rc == 0)
		*ret_eof = r->closing = r->dialect->one_message;
	return rc;
}

bool claude_interrupt(struct driver_run *r, struct buf *to_stdin)
{
	if (r->closing)
		return false;
	r->interrupting = true;
	return buf_puts(to_stdin,
	               "{\"type\":\"control_request\",\"request_id\":\"agentbox-interrupt\","
	               "\"request\":{\"subtype\":\"interrupt\"}}\n") == 0;
}

int64_t claude_turns(const struct driver_run *r)
{
	return r->messages;
}

bool claude_input(struct driver_run *r, const char *p, size_t n, struct buf *to_stdin)
{
	if (r->closing || r->interrupting)
		return false;
	user_message(to_stdin, p, n);
	return to_stdin->failed == 0;
}

/* ---- lines of stdout ---- */

/* Keeps the text of the main agent's last message for final_text.  Is this message new? */
static bool note_message(struct driver_run *r, const char *id)
{
	if (id && r->message && strcmp(id, r->message) == 0)
		return false;
	claude_set(&r->message, id ? id : "");
	r->messages++;
	if (!r->dialect->sums)
		tail_clear(&r->text);
	return true;
}

static bool assistant_block(
        struct driver_run *r, const struct json *block, const char *id, const char *parent)
{
	const char *type = json_str(block, "type", ""), *text;
	if (strcmp(type, "text") == 0 && (text = json_str(block, "text", NULL))) {
		size_t n = strlen(text);
		if (!parent && r->dialect->sums && n) /* each block is a message */
			tail_clear(&r->text);
		if (!parent)
			tail_add(&r->text, text, n);
		return n == 0 ||
		       emit_text(r->sink, EVENT_AGENT_MESSAGE, text, n, false, id, parent);
	}
	if (strcmp(type, "thinking") == 0 && (text = json_str(block, "thinking", NULL)))
		return !*text || emit_text(r->sink, EVENT_AGENT_THINKING, text, strlen(text), false,
		                         id, parent);
	if (strcmp(type, "tool_use") == 0 || strcmp(type, "server_tool_use") == 0)
		return claude_tool_use(r, block, parent);
	return false;
}

static bool assistant_line(struct driver_run *r, const struct json *line)
{
	const struct json *message = json_get(line, "message"),
	                  *content = json_get(message, "content");
	const char *id = json_str(message, "id", NULL);
	const char *parent = json_str(line, "parent_tool_use_id", NULL);
	if (!json_is_array(content))
		return false;
	if (id && !calls_text_ok(id))
		id = NULL;
	if (json_bool(line, "is_api_error_message", false)) {
		const char *text = json_str(json_first(content), "text", "API error");
		claude_fail(r, text, json_str(line, "error", "api_error"));
		return true;
	}
	claude_seen_message(r, message, !parent && note_message(r, id));
	bool all = true;
	for (const struct json *b = json_first(content); b; b = json_next(b))
		all &= assistant_block(r, b, id, parent);
	return all;
}

/* What Claude itself puts into the conversation in the name of the user. */
static bool user_text(const struct json *line, const char *text)
{
	return json_bool(line, "isReplay", false) ||                   /* our own words back */
	       strncmp(text, "[Request interrupted by user", 28) == 0; /* the result says so */
}

static bool user_line(struct driver_run *r, const struct json *line)
{
	const struct json *content = json_get(json_get(line, "message"), "content");
	if (json_text(content))
		return user_text(line, json_text(content));
	if (!json_is_array(content))
		return false;
	const struct json *first = json_first(content);
	/* tool_use_result speaks of the line's only result. */
	const struct json *detail =
	        first && !json_next(first) ? json_get(line, "tool_use_result") : NULL;
	bool all = first != NULL;
	for (const struct json *b = first; b; b = json_next(b)) {
		const char *type = json_str(b, "type", "");
		if (strcmp(type, "tool_result") == 0)
			all &= claude_tool_result(r, b, detail);
		else if (strcmp(type, "text") == 0)
			all &= user_text(line, json_str(b, "text", ""));
		else
			all = false;
	}
	return all;
}

/* --include-partial-messages: pieces of what the assistant lines then say whole. */
static bool stream_line(struct driver_run *r, const struct json *line)
{
	const struct json *event = json_get(line, "event"), *delta = json_get(event, "delta");
	const char *type = json_str(event, "type", "");
	const char *id = json_str(line, "api_message_id", NULL);
	const char *parent = json_str(line, "parent_tool_use_id", NULL);
	const char *text;
	if (strcmp(type, "content_block_delta") != 0)
		return strncmp(type, "message_", 8) == 0 ||
		       strncmp(type, "content_block_", 14) == 0 || strcmp(type, "ping") == 0 ||
		       strcmp(type, "goal_state") == 0;
	if ((text = json_str(delta, "text", NULL)))
		return emit_text(
		        r->sink, EVENT_AGENT_MESSAGE, text, strlen(text), true, id, parent);
	if ((text = json_str(delta, "thinking", NULL)))
		return emit_text(
		        r->sink, EVENT_AGENT_THINKING, text, strlen(text), true, id, parent);
	const char *kind = json_str(delta, "type", "");
	return strcmp(kind, "input_json_delta") == 0 || strcmp(kind, "signature_delta") == 0;
}

static bool control_response(struct driver_run *r, const struct json *line)
{
	const struct json *response = json_get(line, "response");
	if (strcmp(json_str(response, "subtype", ""), "error") == 0)
		emit_error(r->sink, json_str(response, "error", "a control request failed"),
		        "control_error", true);
	return json_is_object(response);
}

static bool result_line(struct driver_run *r, const struct json *line, bool *ret_eof)
{
	const char *session = json_str(line, "session_id", NULL);
	if (launch_id_ok(session))
		claude_set(&r->session, session);
	claude_result(r, line);
	/* More turns follow by themselves: messages that wait, subagents that may ask. */
	bool more = json_int(line, "queued_turn_count", 0) > 0 || (r->asks && r->subagents);
	if (!more || r->interrupting || r->fault)
		r->closing = *ret_eof = true;
	return true;
}

static bool dispatch(
        struct driver_run *r, const struct json *line, struct buf *to_stdin, bool *ret_eof)
{
	const char *type = json_str(line, "type", "");
	if (strcmp(type, "assistant") == 0)
		return assistant_line(r, line);
	if (strcmp(type, "user") == 0)
		return user_line(r, line);
	if (strcmp(type, "system") == 0)
		return claude_system(r, line, to_stdin);
	if (strcmp(type, "result") == 0)
		return result_line(r, line, ret_eof);
	if (strcmp(type, "stream_event") == 0)
		return stream_line(r, line);
	if (strcmp(type, "control_request") == 0 || strcmp(type, "control_cancel_request") == 0)
		return claude_control_request(r, line, to_stdin);
	if (strcmp(type, "control_response") == 0)
		return control_response(r, line);
	if (strcmp(type, "rate_limit_event") == 0)
		return strcmp(json_str(json_get(line, "rate_limit_info"), "status", ""),
		               "allowed") == 0;
	return strcmp(type, "keep_alive") == 0;
}

void claude_line(struct driver_run *r, const char *p, size_t n, bool whole, struct buf *to_stdin,
        bool *ret_eof)
{
	if (n == 0)
		return;
	auto_json struct json *line = whole ? json_parse(p, n, NULL) : NULL;
	bool understood = json_is_object(line) && dispatch(r, line, to_stdin, ret_eof);
	const char *hangs = r->dialect->hangs;
	if (!line && hangs && n >= strlen(hangs) && memcmp(p, hangs, strlen(hangs)) == 0) {
		auto_free char *why = xasprintf("%s waits for ever: %s", r->name, hangs);
		claude_fail(r, why, "authentication");
	}
	emit_unsaid(r->sink, understood, p, n, whole);
}

void claude_error_line(struct driver_run *r, const char *p, size_t n)
{
	ending_reason_line(&r->ending, r->dialect->noise, p, n);
	emit_raw(r->sink, "stderr", p, n, false);
}

/* ---- between two runs ---- */

/* With work in the background it would go on by itself. */
static char *claude_rest(const struct driver_run *r)
{
	if (!r->success || r->fault || r->interrupting || r->subagents || r->nasked || r->nforms ||
	        !r->session || r->dialect->one_message)
		return NULL;
	auto_buf struct buf b = BUF_INIT(4096);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_str(&w, "session", r->session);
	if (r->cost_before >= 0)
		jw_num(&w, "cost", r->cost_before);
	jw_close(&w, '}');
	return b.failed ? NULL : buf_take(&b);
}

static bool claude_idle(const char *p, size_t n)
{
	auto_json struct json *line = json_parse(p, n, NULL);
	return n == 0 || strcmp(json_str(line, "type", ""), "keep_alive") == 0;
}

const struct driver driver_claude = {
        .name = "claude",
        .can = CAN(RESUME) | CAN(INPUT) | CAN(INTERRUPT) | CAN(ASK) | CAN(DENY) | CAN(QUESTIONS) |
               CAN(SYSTEM_PROMPT) | CAN(MODEL) | CAN(TOOLS_ALLOW) | CAN(TOOLS_DENY) |
               CAN(TOOL_PATTERNS) | CAN(MCP_STDIO) | CAN(MCP_HTTP) | CAN(MAX_TURNS) |
               CAN(THINKING) | CAN(PLAN) | CAN(COST) | CAN(USAGE) | CAN(WARM),
        .dialect = &claude_itself,
        .check = claude_check,
        .command = claude_command,
        .open = claude_open,
        .start = claude_start,
        .line = claude_line,
        .error_line = claude_error_line,
        .interrupt = claude_interrupt,
        .answer = claude_answer,
        .reply = claude_reply,
        .input = claude_input,
        .rest = claude_rest,
        .idle = claude_idle,
        .end = claude_end,
        .close = claude_close,
};
