#include "base/mem.h"
#include "drivers/acp.h"
#include "drivers/emit.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/*
 * The agent asks with session/request_permission and offers options, of which
 * the kind (allow_once, allow_always, reject_once, reject_always) is the
 * protocol's and the id its own.  A question is answered at once by the
 * harness, or kept in asked[] until a person answers (permissions: ask).
 * elicitation/create asks for a value instead.
 */

/* ---- replies ---- */

static struct jw reply_open(struct buf *to, const char *id)
{
	struct jw w = JW_INIT(to);
	jw_open(&w, NULL, '{');
	jw_str(&w, "jsonrpc", "2.0");
	jw_raw(&w, "id", id, strlen(id));
	return w;
}

static void reply_close(struct jw *w)
{
	jw_close(w, '}');
	buf_putc(w->to, '\n');
}

/* `option` NULL: cancelled. */
static void reply_option(struct buf *to, const char *id, const char *option)
{
	struct jw w = reply_open(to, id);
	jw_open(&w, "result", '{');
	jw_open(&w, "outcome", '{');
	jw_str(&w, "outcome", option ? "selected" : "cancelled");
	jw_str(&w, "optionId", option);
	jw_close(&w, '}');
	jw_close(&w, '}');
	reply_close(&w);
}

static struct jw reply_action(struct buf *to, const char *id, const char *action)
{
	struct jw w = reply_open(to, id);
	jw_open(&w, "result", '{');
	jw_str(&w, "action", action);
	return w;
}

static void reply_plain_action(struct buf *to, const char *id, const char *action)
{
	struct jw w = reply_action(to, id, action);
	jw_close(&w, '}');
	reply_close(&w);
}

static void reply_error(struct buf *to, const char *id)
{
	struct jw w = reply_open(to, id);
	jw_open(&w, "error", '{');
	jw_int(&w, "code", -32601);
	jw_str(&w, "message", "this host does not do that");
	jw_close(&w, '}');
	reply_close(&w);
}

/* ---- what is open ---- */

static void asked_done(struct acp_asked *q)
{
	free(q->id);
	free(q->permission);
	free(q->call);
	free(q->tool);
	free(q->once);
	free(q->always);
	free(q->deny);
	free(q->field);
	free(q->type);
}

/* Takes it out of the list; the members are the caller's. */
static bool take_asked(
        struct driver_run *r, const char *permission, bool question, struct acp_asked *ret)
{
	for (size_t i = 0; i < r->nasked; i++) {
		if (strcmp(r->asked[i].permission, permission) != 0 ||
		        (r->asked[i].field != NULL) != question)
			continue;
		*ret = r->asked[i];
		r->asked[i] = r->asked[--r->nasked];
		return true;
	}
	return false;
}

/* Takes the members of q. */
static void keep(struct driver_run *r, struct acp_asked q)
{
	r->asked = xrealloc(r->asked, r->nasked + 1, sizeof(*r->asked));
	r->asked[r->nasked++] = q;
}

static bool is_always(const struct driver_run *r, const char *tool)
{
	for (size_t i = 0; i < r->nalways; i++)
		if (strcmp(r->always[i], tool) == 0)
			return true;
	return false;
}

static void cancel(struct driver_run *r, struct acp_asked *q, const char *by, struct buf *to_stdin)
{
	if (q->field)
		emit_question_answered(r->sink, q->permission, "");
	else
		emit_answered(r->sink, q->permission, q->call, "cancelled", by, NULL);
	if (to_stdin && q->field)
		reply_plain_action(to_stdin, q->id, "cancel");
	else if (to_stdin)
		reply_option(to_stdin, q->id, NULL);
	asked_done(q);
}

void acp_permissions_cancel(struct driver_run *r, struct buf *to_stdin)
{
	for (size_t i = 0; i < r->nasked; i++)
		cancel(r, &r->asked[i], to_stdin ? "user" : "agent", to_stdin);
	r->nasked = 0;
}

bool acp_withdrawn(struct driver_run *r, const struct json *params, struct buf *to_stdin)
{
	auto_buf struct buf id = BUF_INIT(CALLS_TEXT_MAX);
	if (json_print(json_get(params, "requestId"), &id) < 0)
		return false;
	for (size_t i = 0; i < r->nasked; i++) {
		if (strcmp(r->asked[i].id, id.p) != 0)
			continue;
		struct acp_asked q = r->asked[i];
		r->asked[i] = r->asked[--r->nasked];
		cancel(r, &q, "agent", to_stdin);
		return true;
	}
	return false;
}

void acp_permissions_done(struct driver_run *r)
{
	for (size_t i = 0; i < r->nasked; i++)
		asked_done(&r->asked[i]);
	free(r->asked);
	fresh_done(&r->ids);
	for (size_t i = 0; i < r->nalways; i++)
		free(r->always[i]);
	free(r->always);
}

/* ---- permissions ---- */

/* The first option of that kind; returns owned, or NULL. */
static char *option_of(const struct json *options, const char *kind)
{
	if (!json_is_array(options))
		return NULL;
	for (const struct json *o = json_first(options); o; o = json_next(o)) {
		const char *id = json_str(o, "optionId", NULL);
		if (calls_text_ok(id) && strcmp(json_str(o, "kind", ""), kind) == 0)
			return xstrdup(id);
	}
	return NULL;
}

/* What is left when the very kind is not offered; NULL answers "cancelled".  A person's "once"
 * never becomes "always". */
static const char *option_for(
        const struct driver_run *r, const struct acp_asked *q, enum driver_answer a)
{
	switch (a) {
	case ANSWER_ONCE:
		return q->once || r->permissions != PERMISSIONS_AUTO ? q->once : q->always;
	case ANSWER_ALWAYS:
		return q->always ? q->always : q->once;
	case ANSWER_DENY:
		break;
	}
	return q->deny;
}

/* Consumes q. */
static void decide(struct driver_run *r, struct acp_asked *q, enum driver_answer a, const char *by,
        const char *reason, struct buf *to_stdin)
{
	const char *option = option_for(r, q, a);
	if (!option && a != ANSWER_DENY) {
		a = ANSWER_DENY;
		reason = q->always ? "The agent can be allowed this for always only."
		                   : "The agent offers no way to allow it.";
		option = q->deny;
	}
	if (a == ANSWER_ALWAYS && !q->always && !is_always(r, q->tool) &&
	        r->nalways < ACP_ALWAYS_MAX) {
		r->always = xrealloc(r->always, r->nalways + 1, sizeof(*r->always));
		r->always[r->nalways++] = xstrdup(q->tool);
	}
	bool once = option == q->once || (a == ANSWER_DENY && q->deny_once);
	r->remembers |= option && !once;
	r->refused = a == ANSWER_DENY;
	reply_option(to_stdin, q->id, option);
	emit_answered(r->sink, q->permission, q->call, emit_answer_word(a), by, reason);
	asked_done(q);
}

static void permission(struct driver_run *r, struct acp_asked *q, struct buf *to_stdin)
{
	if (is_always(r, q->tool))
		decide(r, q, ANSWER_ALWAYS, "harness", NULL, to_stdin);
	else if (r->permissions == PERMISSIONS_AUTO)
		decide(r, q, ANSWER_ONCE, "harness", NULL, to_stdin);
	else if (r->permissions == PERMISSIONS_DENY)
		decide(r, q, ANSWER_DENY, "harness",
		        "Denied: this task runs without permission requests.", to_stdin);
	else if (r->nasked == ACP_ASKED_MAX)
		decide(r, q, ANSWER_DENY, "harness", "Denied: too many questions are open.",
		        to_stdin);
	else
		keep(r, *q);
}

/* The id of a request as it is known outside: without the quotes of a JSON string. */
static char *without_quotes(const char *id)
{
	size_t n = strlen(id), quote = n >= 2 && *id == '"';
	return xstrndup(id + quote, n - 2 * quote);
}

/* What the question is about, as JSON text: what came with it, else what the call was told to be.
 * Some (gemini) have the command in the title alone, and a change to a file as a diff.  Returns
 * owned, or NULL. */
static char *input_of(const struct acp_call *c, const struct json *call)
{
	const struct json *raw = json_get(call, "rawInput"), *content = json_get(call, "content");
	auto_buf struct buf b = BUF_INIT(LIMIT_LINE);
	struct jw w = JW_INIT(&b);
	if (json_is_object(raw) && json_first(raw)) {
		jw_tree(&w, NULL, raw);
	} else if (c->input) {
		buf_puts(&b, c->input);
	} else if (json_is_array(content)) {
		jw_open(&w, NULL, '{');
		jw_str(&w, "title", json_str(call, "title", c->title));
		jw_tree(&w, "content", content);
		jw_close(&w, '}');
	}
	return b.failed || !b.len ? NULL : buf_take(&b);
}

static bool request_permission(
        struct driver_run *r, const char *id, const struct json *params, struct buf *to_stdin)
{
	const struct json *call = json_get(params, "toolCall"),
	                  *options = json_get(params, "options");
	r->history = false;
	struct acp_call *c = acp_call_seen(r, call);
	if (!c || r->state != ACP_PROMPT)
		return false;
	auto_free char *input = input_of(c, call);
	acp_call_tell(r, c);
	const char *what = acp_call_title(call);
	auto_free char *title = emit_title(what ? what : c->title ? c->title : c->name);
	struct acp_asked q = {
	        .id = xstrdup(id),
	        .permission = without_quotes(id),
	        .call = xstrdup(c->id),
	        .tool = xstrdup(c->name),
	        .once = option_of(options, "allow_once"),
	        .always = option_of(options, "allow_always"),
	        .deny = option_of(options, "reject_once"),
	};
	q.deny_once = q.deny != NULL;
	if (!q.deny)
		q.deny = option_of(options, "reject_always");
	emit_asked(r->sink, q.permission, q.call, q.tool, title, input);
	if (r->interrupting)
		cancel(r, &q, "user", to_stdin);
	else
		permission(r, &q, to_stdin);
	return true;
}

bool acp_answer(
        struct driver_run *r, const char *permission_id, enum driver_answer a, struct buf *to_stdin)
{
	struct acp_asked q;
	if (r->state != ACP_PROMPT || !take_asked(r, permission_id, false, &q))
		return false;
	decide(r, &q, a, "user", NULL, to_stdin);
	return true;
}

/* ---- questions ---- */

/* A form with one field is a question that a person can answer with a text. */
static const struct json *only_field(const struct json *params)
{
	const struct json *fields = json_path(params, "requestedSchema", "properties", NULL);
	const struct json *f = json_is_object(fields) ? json_first(fields) : NULL;
	bool simple = f && !json_next(f) && calls_text_ok(json_key(f)) &&
	              calls_text_ok(json_str(f, "type", "string")) &&
	              strcmp(json_str(f, "type", ""), "array") != 0 &&
	              strcmp(json_str(f, "type", ""), "object") != 0;
	return simple ? f : NULL;
}

static bool elicitation(
        struct driver_run *r, const char *id, const struct json *params, struct buf *to_stdin)
{
	const struct json *field = only_field(params);
	const char *message = json_str(params, "message", NULL);
	if (!field || !message || r->permissions != PERMISSIONS_ASK || r->state != ACP_PROMPT ||
	        r->interrupting || r->nasked == ACP_ASKED_MAX ||
	        strcmp(json_str(params, "mode", "form"), "form") != 0) {
		reply_plain_action(to_stdin, id, "decline"); /* nobody there could answer it */
		return false;
	}
	struct acp_asked q = {
	        .id = xstrdup(id),
	        .permission = without_quotes(id),
	        .call = xstrdup(""),
	        .tool = xstrdup(""),
	        .field = xstrdup(json_key(field)),
	        .type = xstrdup(json_str(field, "type", "string")),
	};
	emit_question(r->sink, q.permission, message, json_get(field, "enum"));
	keep(r, q);
	return true;
}

/* The text as what the field is; false: it is not. */
static bool put_value(struct jw *w, const struct acp_asked *q, const char *text)
{
	bool yes = strcmp(text, "true") == 0 || strcmp(text, "yes") == 0;
	bool no = strcmp(text, "false") == 0 || strcmp(text, "no") == 0;
	if (strcmp(q->type, "boolean") == 0 && (yes || no)) {
		jw_bool(w, q->field, yes);
	} else if (strcmp(q->type, "number") == 0 || strcmp(q->type, "integer") == 0) {
		bool whole = strcmp(q->type, "integer") == 0;
		char *end;
		errno = 0;
		long long integer = whole ? strtoll(text, &end, 10) : 0;
		double value = whole ? 0 : strtod(text, &end);
		/* "nan" is no number of JSON, and one that is too large would be another. */
		if (end == text || *end || errno == ERANGE || !isfinite(value))
			return false;
		if (whole)
			jw_int(w, q->field, integer);
		else
			jw_num(w, q->field, value);
	} else if (strcmp(q->type, "string") == 0) {
		jw_str(w, q->field, text);
	} else {
		return false;
	}
	return true;
}

bool acp_reply(struct driver_run *r, const char *question_id, const char *p, size_t n,
        struct buf *to_stdin)
{
	struct acp_asked q;
	if (r->state != ACP_PROMPT || !take_asked(r, question_id, true, &q))
		return false;
	if (!p) {
		cancel(r, &q, "harness", to_stdin);
		return true;
	}
	auto_free char *text = xstrndup(p, n);
	auto_buf struct buf content = BUF_INIT(to_stdin->limit);
	struct jw v = JW_INIT(&content);
	jw_open(&v, NULL, '{');
	bool fits = put_value(&v, &q, text);
	jw_close(&v, '}');
	struct jw w = reply_action(to_stdin, q.id, fits ? "accept" : "decline");
	if (fits)
		jw_raw(&w, "content", content.p, content.len);
	jw_close(&w, '}');
	reply_close(&w);
	emit_question_answered(r->sink, q.permission, text);
	asked_done(&q);
	return true;
}

/* ---- requests ---- */

bool acp_request(struct driver_run *r, const struct json *line, struct buf *to_stdin)
{
	const char *method = json_str(line, "method", "");
	const struct json *params = json_get(line, "params");
	auto_buf struct buf id = BUF_INIT(CALLS_TEXT_MAX);
	if (json_print(json_get(line, "id"), &id) < 0 || !id.len || strchr("[{", *id.p))
		return false; /* it can hardly wait for an answer to that */
	bool question = strcmp(method, "elicitation/create") == 0;
	auto_free char *known = without_quotes(id.p);
	if ((question || strcmp(method, "session/request_permission") == 0) &&
	        !fresh_take(&r->ids, known)) {
		reply_error(to_stdin, id.p);
		return false;
	}
	if (question)
		return elicitation(r, id.p, params, to_stdin);
	if (strcmp(method, "session/request_permission") == 0 &&
	        request_permission(r, id.p, params, to_stdin))
		return true;
	/* Unanswered it would wait for ever. */
	reply_error(to_stdin, id.p);
	return false;
}
