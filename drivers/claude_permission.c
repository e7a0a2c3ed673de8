#include "base/mem.h"
#include "drivers/claude.h"
#include "drivers/emit.h"
#include "drivers/rules.h"

#include <string.h>

/*
 * Claude asks with a control_request and waits for the control_response of the
 * same request_id; "allow" must repeat the input, which is what then runs.
 * A question is answered at once by the rules of the harness, or kept in
 * asked[] until a person answers (permissions: ask).
 */

static void reply_open(struct jw *w, const char *subtype, const char *request)
{
	jw_open(w, NULL, '{');
	jw_str(w, "type", "control_response");
	jw_open(w, "response", '{');
	jw_str(w, "subtype", subtype);
	jw_str(w, "request_id", request);
}

static void reply_close(struct jw *w)
{
	jw_close(w, '}');
	jw_close(w, '}');
	buf_putc(w->to, '\n');
}

void claude_reply_allow(struct buf *to_stdin, const char *request, const char *input)
{
	struct jw w = JW_INIT(to_stdin);
	reply_open(&w, "success", request);
	jw_open(&w, "response", '{');
	jw_str(&w, "behavior", "allow");
	jw_raw(&w, "updatedInput", input, strlen(input));
	jw_close(&w, '}');
	reply_close(&w);
}

void claude_reply_deny(struct buf *to_stdin, const char *request, const char *why)
{
	struct jw w = JW_INIT(to_stdin);
	reply_open(&w, "success", request);
	jw_open(&w, "response", '{');
	jw_str(&w, "behavior", "deny");
	jw_str(&w, "message", why);
	jw_close(&w, '}');
	reply_close(&w);
}

static void reply_error(struct buf *to_stdin, const char *request, const char *why)
{
	struct jw w = JW_INIT(to_stdin);
	reply_open(&w, "error", request);
	jw_str(&w, "error", why);
	reply_close(&w);
}

/* ---- questions ---- */

static void asked_done(struct claude_asked *q)
{
	free(q->request);
	free(q->call);
	free(q->tool);
	free(q->input);
}

static bool is_always(const struct driver_run *r, const char *tool)
{
	for (size_t i = 0; i < r->nalways; i++)
		if (strcmp(r->always[i], tool) == 0)
			return true;
	return false;
}

static bool allowed_by_harness(
        const struct driver_run *r, const char *tool, const struct json *input)
{
	const char *const *rules = (const char *const *)r->allow;
	return rules_allow(rules, tool, input, r->cwd ? r->cwd : DRIVER_WORKSPACE);
}

/* An answer repeats the input, so that of each open question is held. */
static bool has_room(const struct driver_run *r, const char *input)
{
	size_t bytes = strlen(input);
	for (size_t i = 0; i < r->nasked; i++)
		bytes += strlen(r->asked[i].input);
	return r->nasked < CLAUDE_ASKED_MAX && bytes <= CLAUDE_ASKED_BYTES;
}

/* Why the harness refuses, or NULL: a person is to be asked. */
static const char *refusal(const struct driver_run *r, const char *input)
{
	if (r->permissions == PERMISSIONS_DENY)
		return "Denied: this task runs without permission requests.";
	if (r->permissions == PERMISSIONS_AUTO)
		return "Denied: the rules of this task do not allow this call.";
	if (!has_room(r, input))
		return "Denied: too many questions are open.";
	return NULL;
}

/* Takes the members of q. */
static void keep(struct driver_run *r, struct claude_asked q)
{
	r->asked = xrealloc(r->asked, r->nasked + 1, sizeof(*r->asked));
	r->asked[r->nasked++] = q;
}

static bool can_use_tool(
        struct driver_run *r, const char *request, const struct json *req, struct buf *to_stdin)
{
	const char *tool = json_str(req, "tool_name", NULL);
	const char *call = json_str(req, "tool_use_id", "");
	const struct json *input = json_get(req, "input");
	auto_buf struct buf text = BUF_INIT(LIMIT_EVENT);
	/* Once stdin is closed, no answer would be heard. */
	if (r->closing || !calls_text_ok(tool) || strlen(call) > CALLS_TEXT_MAX ||
	        !json_is_object(input) || json_print(input, &text) < 0 ||
	        !fresh_take(&r->ids, request))
		return false;
	if (r->dialect->questions && r->permissions == PERMISSIONS_ASK &&
	        strcmp(tool, "AskUserQuestion") == 0)
		return claude_question(r, request, input, text.p);
	struct claude_asked q = {xstrdup(request), xstrdup(call), xstrdup(tool), buf_take(&text)};
	auto_free char *title = claude_tool_title(r, tool, input);
	emit_asked(r->sink, q.request, q.call, q.tool, title, q.input);
	const char *why = NULL;
	if (allowed_by_harness(r, tool, input) || is_always(r, tool)) {
		claude_reply_allow(to_stdin, request, q.input);
		emit_answered(r->sink, request, call, is_always(r, tool) ? "always" : "once",
		        "harness", NULL);
	} else if ((why = refusal(r, q.input))) {
		claude_reply_deny(to_stdin, request, why);
		emit_answered(r->sink, request, call, "deny", "harness", why);
	} else {
		keep(r, q);
		return true;
	}
	asked_done(&q);
	return true;
}

/* The agent withdrew its question (an interrupt, a hook that decided). */
static bool cancelled(struct driver_run *r, const char *request)
{
	for (size_t i = 0; i < r->nasked; i++) {
		struct claude_asked *q = &r->asked[i];
		if (strcmp(q->request, request) != 0)
			continue;
		emit_answered(r->sink, request, q->call, "cancelled", "agent", NULL);
		asked_done(q);
		*q = r->asked[--r->nasked];
		return true;
	}
	return claude_question_cancelled(r, request);
}

bool claude_control_request(struct driver_run *r, const struct json *line, struct buf *to_stdin)
{
	const char *request = json_str(line, "request_id", NULL);
	if (!calls_text_ok(request))
		return false;
	if (strcmp(json_str(line, "type", ""), "control_cancel_request") == 0)
		return cancelled(r, request);
	const struct json *req = json_get(line, "request");
	if (strcmp(json_str(req, "subtype", ""), "can_use_tool") == 0 &&
	        can_use_tool(r, request, req, to_stdin))
		return true;
	/* Unanswered it would wait for ever. */
	reply_error(to_stdin, request, "not supported by this host");
	return false;
}

bool claude_answer(
        struct driver_run *r, const char *permission_id, enum driver_answer a, struct buf *to_stdin)
{
	size_t i = 0;
	while (i < r->nasked && strcmp(r->asked[i].request, permission_id) != 0)
		i++;
	if (i == r->nasked || r->closing)
		return false;
	struct claude_asked q = r->asked[i];
	r->asked[i] = r->asked[--r->nasked];
	if (a == ANSWER_DENY)
		claude_reply_deny(to_stdin, q.request, "Denied by the user.");
	else
		claude_reply_allow(to_stdin, q.request, q.input);
	if (a == ANSWER_ALWAYS && !is_always(r, q.tool) && r->nalways < CLAUDE_ALWAYS_MAX) {
		r->always = xrealloc(r->always, r->nalways + 1, sizeof(*r->always));
		r->always[r->nalways++] = xstrdup(q.tool);
	}
	emit_answered(r->sink, q.request, q.call, emit_answer_word(a), "user", NULL);
	asked_done(&q);
	return true;
}

/* system/permission_denied: Claude refused by itself, nobody was asked. */
void claude_permission_denied(struct driver_run *r, const struct json *line)
{
	const char *call = json_str(line, "tool_use_id", "");
	emit_answered(r->sink, call, call, "deny", "agent", json_str(line, "message", NULL));
}

void claude_permission_done(struct driver_run *r)
{
	for (size_t i = 0; i < r->nasked; i++)
		asked_done(&r->asked[i]);
	free(r->asked);
	claude_question_done(r);
	fresh_done(&r->ids);
	for (size_t i = 0; i < r->nalways; i++)
		free(r->always[i]);
	free(r->always);
}
