#include "base/limits.h"
#include "base/mem.h"
#include "drivers/codex_server.h"
#include "drivers/emit.h"

#include <string.h>

/*
 * Codex asks by a request and waits for its answer: whether a command may run
 * or a patch be applied (item/.../requestApproval, about an item that has
 * begun), and whether a tool of an MCP server may be called (as a form that the
 * server might have sent, mcpServer/elicitation/request; it names no item).
 * Whatever else it asks is refused, because unanswered it would wait for ever.
 */

/* ---- answers ---- */

static void reply_open(struct jw *w, const char *request, const char *member)
{
	jw_open(w, NULL, '{');
	jw_raw(w, "id", request, strlen(request));
	jw_open(w, member, '{');
}

static void reply_close(struct jw *w)
{
	jw_close(w, '}');
	jw_close(w, '}');
	buf_putc(w->to, '\n');
}

static void reply(const struct codex_asked *q, const char *decision, struct buf *to_stdin)
{
	bool yes = strncmp(decision, "accept", 6) == 0;
	struct jw w = JW_INIT(to_stdin);
	reply_open(&w, q->request, "result");
	if (!q->elicitation) {
		jw_str(&w, "decision", decision);
	} else {
		jw_str(&w, "action", yes ? "accept" : decision);
		if (yes) {
			jw_open(&w, "content", '{');
			jw_close(&w, '}');
		}
	}
	reply_close(&w);
}

static void refuse(const struct json *id, struct buf *to_stdin)
{
	auto_buf struct buf request = BUF_INIT(4096);
	if (json_print(id, &request) < 0)
		return;
	struct jw w = JW_INIT(to_stdin);
	reply_open(&w, request.p, "error");
	jw_int(&w, "code", -32601);
	jw_str(&w, "message", "not supported by this host");
	reply_close(&w);
}

/* ---- questions ---- */

static void asked_done(struct codex_asked *q)
{
	free(q->request);
	free(q->permission);
	free(q->call);
	free(q->tool);
}

static bool is_always(const struct driver_run *r, const char *tool)
{
	for (size_t i = 0; i < r->nalways; i++)
		if (strcmp(r->always[i], tool) == 0)
			return true;
	return false;
}

static bool offers(const struct json *params, const char *decision)
{
	const struct json *list = json_get(params, "availableDecisions");
	if (!json_is_array(list))
		return true; /* of patches it offers all, and does not say so */
	for (const struct json *it = json_first(list); it; it = json_next(it))
		if (json_text(it) && strcmp(json_text(it), decision) == 0)
			return true;
	return false;
}

/* What the question is about.  false: none that is understood. */
static bool read_question(
        const struct driver_run *r, const struct json *line, struct codex_asked *ret)
{
	const char *method = json_str(line, "method", "");
	const struct json *params = json_get(line, "params"), *meta = json_get(params, "_meta");
	auto_buf struct buf id = BUF_INIT(4096);
	if (json_print(json_get(line, "id"), &id) < 0 || id.len > CALLS_TEXT_MAX)
		return false;
	const char *call = json_str(params, "itemId", "");
	auto_free char *tool = NULL;
	if (strcmp(method, "item/commandExecution/requestApproval") == 0) {
		tool = xstrdup("shell");
	} else if (strcmp(method, "item/fileChange/requestApproval") == 0) {
		tool = xstrdup("apply_patch");
	} else if (strcmp(method, "mcpServer/elicitation/request") == 0 &&
	           strcmp(json_str(meta, "codex_approval_kind", ""), "mcp_tool_call") == 0) {
		const char *last = r->items.title_of;
		tool = xasprintf("mcp__%.100s__%.100s", json_str(params, "serverName", "?"),
		        json_str(meta, "tool_name", "?"));
		const char *open = last ? calls_name(&r->items.calls, last) : NULL;
		call = open && strcmp(open, tool) == 0 ? last : "";
	} else {
		return false;
	}
	const char *text = json_text(json_get(line, "id"));
	*ret = (struct codex_asked){.elicitation = strncmp(method, "mcp", 3) == 0,
	        .session = offers(params, "acceptForSession"),
	        .permission = xstrdup(text ? text : id.p),
	        .call = xstrdup(strlen(call) <= CALLS_TEXT_MAX ? call : ""),
	        .tool = take(tool)};
	ret->request = buf_take(&id);
	return true;
}

/* A command is told with the question, what else is asked about with its item. */
static void tell_asked(
        const struct driver_run *r, const struct codex_asked *q, const struct json *params)
{
	bool last = r->items.title_of && strcmp(r->items.title_of, q->call) == 0;
	const char *command = json_str(params, "command", NULL);
	auto_free char *told = command ? codex_input_of(params) : NULL;
	auto_free char *title =
	        last ? xstrdup(r->items.title) : emit_title(command ? command : q->tool);
	emit_asked(r->items.sink, q->permission, q->call, q->tool, title,
	        told   ? told
	        : last ? r->items.input
	               : NULL);
}

bool codex_ask(struct driver_run *r, const struct json *line, struct buf *to_stdin)
{
	struct codex_asked q = {0};
	/* Once stdin is closed, no answer would be heard. */
	if (r->closing || !read_question(r, line, &q) || !fresh_take(&r->ids, q.permission)) {
		asked_done(&q);
		refuse(json_get(line, "id"), to_stdin);
		return false;
	}
	tell_asked(r, &q, json_get(line, "params"));
	const char *answer = "deny", *why = NULL;
	if (r->interrupting)
		why = "Denied: the run is being stopped.";
	else if (r->permissions == PERMISSIONS_DENY)
		why = "Denied: this task runs without permission requests.";
	else if (r->permissions == PERMISSIONS_AUTO || is_always(r, q.tool))
		answer = r->permissions == PERMISSIONS_AUTO ? "once" : "always";
	else if (r->nasked == CODEX_ASKED_MAX)
		why = "Denied: too many questions are open.";
	else
		answer = NULL;
	if (!answer) {
		r->asked = xrealloc(r->asked, r->nasked + 1, sizeof(*r->asked));
		r->asked[r->nasked++] = q;
		return true;
	}
	reply(&q, !why ? "accept" : r->interrupting ? "cancel" : "decline", to_stdin);
	emit_answered(r->items.sink, q.permission, q.call, answer, "harness", why);
	asked_done(&q);
	return true;
}

/* Takes the question out of the list; false: it is not open. */
static bool take_asked(struct driver_run *r, const char *permission, struct codex_asked *ret)
{
	for (size_t i = 0; i < r->nasked; i++) {
		if (strcmp(r->asked[i].permission, permission) != 0)
			continue;
		*ret = r->asked[i];
		r->asked[i] = r->asked[--r->nasked];
		return true;
	}
	return false;
}

bool codex_answer(
        struct driver_run *r, const char *permission_id, enum driver_answer a, struct buf *to_stdin)
{
	struct codex_asked q;
	if (r->closing || !take_asked(r, permission_id, &q))
		return false;
	bool session = a == ANSWER_ALWAYS && q.session && !q.elicitation;
	r->remembers |= session;
	reply(&q, a == ANSWER_DENY ? "decline" : session ? "acceptForSession" : "accept", to_stdin);
	/* Codex's "session" is about this very command; ours about the tool. */
	if (a == ANSWER_ALWAYS && !is_always(r, q.tool) && r->nalways < CODEX_ALWAYS_MAX)
		r->always[r->nalways++] = xstrdup(q.tool);
	emit_answered(r->items.sink, q.permission, q.call, emit_answer_word(a), "user", NULL);
	asked_done(&q);
	return true;
}

/* serverRequest/resolved comes for each question; of one that is still open Codex itself decided.
 */
bool codex_ask_resolved(struct driver_run *r, const struct json *params)
{
	auto_buf struct buf id = BUF_INIT(4096);
	struct codex_asked q;
	const struct json *request = json_get(params, "requestId");
	if (!request || json_print(request, &id) < 0)
		return false;
	if (!take_asked(r, json_text(request) ? json_text(request) : id.p, &q))
		return true;
	emit_answered(r->items.sink, q.permission, q.call, "cancelled", "agent", NULL);
	asked_done(&q);
	return true;
}

void codex_ask_done(struct driver_run *r)
{
	for (size_t i = 0; i < r->nasked; i++)
		asked_done(&r->asked[i]);
	free(r->asked);
	fresh_done(&r->ids);
	for (size_t i = 0; i < r->nalways; i++)
		free(r->always[i]);
}
