#include "base/limits.h"
#include "base/mem.h"
#include "drivers/emit.h"
#include "drivers/pi.h"
#include "drivers/usage.h"

#include <string.h>

/*
 * Theory of operation.  get_state (for the session's id) and the prompt go out
 * at once.  A message of the user is another prompt: pi puts it into the run
 * that goes on, or begins a new one with it, and says which.  When it has
 * settled, and no prompt is without its answer, the session's sums are asked
 * for, stdin is closed, and pi exits.
 *
 * pi itself asks nobody.  What is asked comes from extensions: ours
 * (pi_command.c) before a call that may change something, or the user's.
 */

/* ---- requests ---- */

static bool put_prompt(struct driver_run *r, const char *p, size_t n, struct buf *to_stdin)
{
	auto_buf struct buf line = BUF_INIT((size_t)LIMIT_PROMPT * 6 + 4096);
	struct jw w = JW_INIT(&line);
	auto_free char *id = xasprintf("prompt-%d", r->prompts + 1);
	jw_open(&w, NULL, '{');
	jw_str(&w, "id", id);
	jw_str(&w, "type", "prompt");
	jw_bytes(&w, "message", p, n);
	if (r->prompts)
		jw_str(&w, "streamingBehavior", "steer");
	jw_close(&w, '}');
	buf_putc(&line, '\n');
	if (line.failed || buf_put(to_stdin, line.p, line.len) < 0)
		return false;
	r->prompts++;
	r->unanswered++;
	return true;
}

static void put_request(const char *type, struct buf *to_stdin)
{
	buf_printf(to_stdin, "{\"id\":\"%s\",\"type\":\"%s\"}\n", type, type);
}

static int rpc_start(struct driver_run *r, struct buf *to_stdin, bool *ret_eof)
{
	if (!r->waited)
		put_request("get_state", to_stdin);
	*ret_eof = false;
	bool fits = put_prompt(r, r->prompt.p, r->prompt.n, to_stdin);
	prompt_done(&r->prompt);
	return fits ? 0 : -ENOBUFS;
}

static bool rpc_input(struct driver_run *r, const char *p, size_t n, struct buf *to_stdin)
{
	return !r->closing && !r->interrupting && put_prompt(r, p, n, to_stdin);
}

static bool rpc_interrupt(struct driver_run *r, struct buf *to_stdin)
{
	if (r->closing || r->interrupting)
		return false;
	r->interrupting = true;
	put_request("abort", to_stdin);
	return true;
}

/* ---- answers ---- */

static void go_on(struct driver_run *r, struct buf *to_stdin, bool *ret_eof)
{
	if (!r->settled || r->closing || (r->unanswered && !r->interrupting))
		return;
	put_request("get_session_stats", to_stdin);
	r->closing = true;
	*ret_eof = !r->stays; /* else with their answer */
}

/* The sums of the session count also what pi used on the side; those of a session that goes on
 * have what it used before, too. */
static void stats(struct driver_run *r, const struct json *data)
{
	const struct json *t = json_get(data, "tokens");
	double cost = json_num(data, "cost", -1);
	if (!json_is_object(t))
		return;
	int64_t cached = usage_tokens(t, "cacheRead");
	r->sums = (struct driver_usage){
	        .input_tokens = usage_tokens(t, "input") + cached + usage_tokens(t, "cacheWrite"),
	        .output_tokens = usage_tokens(t, "output"),
	        .cached_tokens = cached,
	        .cost_usd = cost,
	};
	struct driver_usage u = r->sums;
	if (r->known)
		usage_take_off(&u, &r->before);
	if ((r->resumed && !r->known) || u.input_tokens <= r->usage.input_tokens)
		return;
	u.turns = r->usage.turns;
	r->usage = u;
	pi_tell_usage(r);
}

static void refused(struct driver_run *r, const char *what, const char *why, bool *ret_eof)
{
	if (strcmp(what, "prompt") != 0) {
		*ret_eof = r->stays && r->closing; /* the sums are not told */
		emit_error(r->sink, why, "request_failed", true);
		return;
	}
	free(r->error);
	r->error = xstrdup(why);
	r->settled = false;
	r->closing = *ret_eof = true;
}

static bool response(
        struct driver_run *r, const struct json *line, struct buf *to_stdin, bool *ret_eof)
{
	const char *what = json_str(line, "command", "");
	const struct json *data = json_get(line, "data");
	bool prompt = strcmp(what, "prompt") == 0;
	if (prompt && r->unanswered > 0)
		r->unanswered--;
	if (!json_bool(line, "success", false)) {
		refused(r, what, json_str(line, "error", "refused"), ret_eof);
		return true;
	}
	const char *how = json_str(data, "disposition", "started");
	if (prompt && strcmp(how, "started") == 0)
		r->settled = false; /* agent_start follows */
	else if (prompt && strcmp(how, "handled") == 0 && r->prompts == 1)
		refused(r, what, "pi took the prompt for a command of its own", ret_eof);
	if (prompt)
		go_on(r, to_stdin, ret_eof);
	if (strcmp(what, "get_state") == 0 || strcmp(what, "get_session_stats") == 0)
		pi_session(r, json_str(data, "sessionId", NULL));
	if (strcmp(what, "get_session_stats") == 0) {
		stats(r, data);
		*ret_eof = r->stays && r->closing;
	}
	return prompt || strcmp(what, "get_state") == 0 || strcmp(what, "abort") == 0 ||
	       strcmp(what, "get_session_stats") == 0;
}

/* ---- questions ---- */

static void reply(const char *id, const char *text, bool yes, bool question, struct buf *to_stdin)
{
	struct jw w = JW_INIT(to_stdin);
	jw_open(&w, NULL, '{');
	jw_str(&w, "type", "extension_ui_response");
	jw_str(&w, "id", id);
	if (text)
		jw_str(&w, "value", text);
	else if (question)
		jw_bool(&w, "cancelled", true);
	else
		jw_bool(&w, "confirmed", yes);
	jw_close(&w, '}');
	buf_putc(to_stdin, '\n');
}

static void asked_done(struct pi_asked *q)
{
	free(q->id);
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

/* The call that is asked about, or NULL: our extension names it, of others it is the one begun
 * last. */
static const struct pi_call *call_of(const struct driver_run *r, const char *id)
{
	for (size_t i = 0; i < r->nopen; i++)
		if (id && strcmp(r->open[i].id, id) == 0)
			return &r->open[i];
	return !id && r->nopen ? &r->open[r->nopen - 1] : NULL;
}

static void keep(struct driver_run *r, struct pi_asked q)
{
	r->asked[r->nasked++] = q;
}

/* What a confirmation is about, as JSON text: the input that our extension was told, or whatever
 * another one says of it.  Returns owned. */
static char *input_of(const struct json *line, const struct json *about, bool ours)
{
	auto_buf struct buf b = BUF_INIT(LIMIT_LINE);
	const struct json *input = ours ? json_get(about, "input") : about;
	struct jw w = JW_INIT(&b);
	if (json_is_object(input)) {
		jw_tree(&w, NULL, input);
	} else {
		jw_open(&w, NULL, '{');
		jw_str(&w, "message", json_str(line, "message", NULL));
		jw_close(&w, '}');
	}
	return b.failed ? NULL : buf_take(&b);
}

static void confirm(
        struct driver_run *r, const char *id, const struct json *line, struct buf *to_stdin)
{
	const char *message = json_str(line, "message", "");
	auto_json struct json *about = json_parse(message, strlen(message), NULL);
	const char *named = json_str(about, "toolCallId", NULL);
	bool ours = named != NULL;
	const struct pi_call *open = call_of(r, named);
	const char *call = open ? open->id : "", *tool = calls_name(&r->calls, call);
	struct pi_asked q = {xstrdup(id), xstrdup(call), xstrdup(tool ? tool : ""), false};
	auto_free char *title =
	        emit_title(ours && open ? open->title : json_str(line, "title", "?"));
	auto_free char *input = input_of(line, about, ours);
	emit_asked(r->sink, id, call, q.tool, title, input);
	const char *answer = "deny", *why = NULL;
	if (r->interrupting)
		why = "Denied: the run is being stopped.";
	else if (r->permissions == PERMISSIONS_DENY)
		why = "Denied: this task runs without permission requests.";
	else if (r->permissions == PERMISSIONS_AUTO || (*q.tool && is_always(r, q.tool)))
		answer = r->permissions == PERMISSIONS_AUTO ? "once" : "always";
	else if (r->nasked == PI_ASKED_MAX)
		why = "Denied: too many questions are open.";
	else {
		keep(r, q);
		return;
	}
	reply(id, NULL, !why, false, to_stdin);
	emit_answered(r->sink, id, call, answer, "harness", why);
	asked_done(&q);
}

static bool ui_request(struct driver_run *r, const struct json *line, struct buf *to_stdin)
{
	static const char *const shows[] = {
	        "setStatus", "setWidget", "setTitle", "set_editor_text"};
	const char *id = json_str(line, "id", NULL), *method = json_str(line, "method", "");
	for (size_t i = 0; i < ARRAY_LEN(shows); i++) /* for a screen */
		if (strcmp(method, shows[i]) == 0)
			return true;
	bool text = strcmp(method, "select") == 0 || strcmp(method, "input") == 0 ||
	            strcmp(method, "editor") == 0;
	/* Once stdin is closed, no answer would be heard. */
	if (r->closing || !calls_text_ok(id) || (!text && strcmp(method, "confirm") != 0))
		return false;
	if (!fresh_take(&r->ids, id)) {
		reply(id, NULL, false, text, to_stdin);
		return false;
	}
	if (!text) {
		confirm(r, id, line, to_stdin);
	} else if (r->permissions == PERMISSIONS_ASK && !r->interrupting &&
	           r->nasked < PI_ASKED_MAX) {
		emit_question(r->sink, id, json_str(line, "title", ""), json_get(line, "options"));
		keep(r, (struct pi_asked){xstrdup(id), xstrdup(""), xstrdup(""), true});
	} else {
		reply(id, NULL, false, true, to_stdin); /* nobody is there */
		return false;
	}
	return true;
}

/* Takes the question out of the list; false: it is not open. */
static bool take_asked(struct driver_run *r, const char *id, bool question, struct pi_asked *ret)
{
	for (size_t i = 0; i < r->nasked; i++) {
		if (r->asked[i].question != question || strcmp(r->asked[i].id, id) != 0)
			continue;
		*ret = r->asked[i];
		r->asked[i] = r->asked[--r->nasked];
		return true;
	}
	return false;
}

static bool rpc_answer(
        struct driver_run *r, const char *permission_id, enum driver_answer a, struct buf *to_stdin)
{
	struct pi_asked q;
	if (r->closing || !take_asked(r, permission_id, false, &q))
		return false;
	reply(q.id, NULL, a != ANSWER_DENY, false, to_stdin);
	if (a == ANSWER_ALWAYS && *q.tool && !is_always(r, q.tool) && r->nalways < PI_ALWAYS_MAX)
		r->always[r->nalways++] = xstrdup(q.tool);
	emit_answered(r->sink, q.id, q.call, emit_answer_word(a), "user", NULL);
	asked_done(&q);
	return true;
}

static bool rpc_reply(struct driver_run *r, const char *question_id, const char *p, size_t n,
        struct buf *to_stdin)
{
	struct pi_asked q;
	if (r->closing || (p && memchr(p, '\0', n)) || !take_asked(r, question_id, true, &q))
		return false;
	auto_free char *text = p ? xstrndup(p, n) : NULL;
	reply(q.id, text, false, true, to_stdin);
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "questionId", q.id);
	jw_str(&w, "text", text ? text : "");
	(void)emit_members(r->sink, EVENT_QUESTION_ANSWERED, &b);
	asked_done(&q);
	return true;
}

/* ---- lines ---- */

static void rpc_line(struct driver_run *r, const char *p, size_t n, bool whole,
        struct buf *to_stdin, bool *ret_eof)
{
	if (n == 0)
		return;
	auto_json struct json *line = whole ? json_parse(p, n, NULL) : NULL;
	const char *type = json_str(line, "type", "");
	bool understood;
	if (strcmp(type, "response") == 0) {
		understood = response(r, line, to_stdin, ret_eof);
	} else if (strcmp(type, "extension_ui_request") == 0) {
		understood = ui_request(r, line, to_stdin);
	} else {
		understood = json_is_object(line) && pi_event(r, line);
		go_on(r, to_stdin, ret_eof);
	}
	emit_unsaid(r->sink, understood, p, n, whole);
}

/* ---- between two runs ---- */

static struct driver_run *rpc_open(
        const struct driver *d, const struct driver_spec *spec, struct event_sink *sink)
{
	struct driver_run *r = pi_open(d, spec, sink);
	r->stays = spec->stays;
	if (!spec->live)
		return r;
	auto_json struct json *j = json_parse(spec->live, strlen(spec->live), NULL);
	pi_session(r, json_str(j, "session", NULL));
	r->waited = r->known = true;
	r->before = usage_of(j);
	return r;
}

static char *rpc_rest(const struct driver_run *r)
{
	if (!r->settled || r->error || r->interrupting || r->nasked || r->unanswered ||
	        !r->session || !r->stop || strcmp(r->stop, "stop") != 0)
		return NULL;
	auto_buf struct buf b = BUF_INIT(4096);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_str(&w, "session", r->session);
	usage_put(&w, &r->sums);
	jw_close(&w, '}');
	return b.failed ? NULL : buf_take(&b);
}

static bool rpc_idle(const char *p, size_t n)
{
	auto_json struct json *line = json_parse(p, n, NULL);
	return n == 0 || pi_is_silent(json_str(line, "type", ""));
}

const struct driver driver_pi = {
        .name = "pi",
        .can = CAN(RESUME) | CAN(INPUT) | CAN(INTERRUPT) | CAN(ASK) | CAN(DENY) | CAN(QUESTIONS) |
               CAN(SYSTEM_PROMPT) | CAN(MODEL) | CAN(TOOLS_ALLOW) | CAN(TOOLS_DENY) |
               CAN(MCP_STDIO) | CAN(MCP_HTTP) | CAN(THINKING) | CAN(COST) | CAN(USAGE) | CAN(WARM),
        .check = pi_check,
        .command = pi_rpc_command,
        .open = rpc_open,
        .start = rpc_start,
        .line = rpc_line,
        .error_line = pi_error_line,
        .turns = pi_turns,
        .interrupt = rpc_interrupt,
        .answer = rpc_answer,
        .reply = rpc_reply,
        .input = rpc_input,
        .rest = rpc_rest,
        .idle = rpc_idle,
        .end = pi_end,
        .close = pi_close,
};
