/* What people say to agents that work: answers to permissions and questions, messages. */
#include "supervisor/api.h"

#include "base/json.h"
#include "base/mem.h"
#include "drivers/emit.h"
#include "supervisor/body.h"
#include "supervisor/daemon.h"
#include "supervisor/http.h"
#include "supervisor/problem.h"
#include "supervisor/runs.h"
#include "supervisor/said.h"
#include "supervisor/scope.h"

#include <string.h>

static const struct body_key message_keys[] = {{"text", BODY_STRING, true}};
static const struct body_key answer_keys[] = {{"answer", BODY_STRING, true}};

static void reply_said(struct http_request *r, const struct said *s)
{
	auto_buf struct buf b = BUF_INIT(4096);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_str(&w, "runId", http_param(r, 0));
	if (s->what == SAID_ANSWER) {
		jw_str(&w, "permissionId", s->id);
		jw_str(&w, "answer", emit_answer_word(s->answer));
	} else if (s->what == SAID_REPLY) {
		jw_str(&w, "questionId", s->id);
	}
	jw_close(&w, '}');
	http_reply(r, s->what == SAID_INPUT ? 202 : 200, "application/json", &b);
}

/* The body, checked; NULL where the request has had its refusal. */
static struct json *read_body(
        struct http_request *r, const struct body_key *keys, size_t n, struct err *e)
{
	size_t len;
	const char *text = http_body(r, &len);
	auto_json struct json *body = body_parse(text, len, e);
	return body && body_check(body, "", keys, n, e) == 0 ? take(body) : NULL;
}

static int check_id(const struct said *s, struct err *e)
{
	return strlen(s->id) <= SAID_ID_MAX
	               ? 0
	               : err_set(e, -ENOENT, "no id is longer than %d bytes", SAID_ID_MAX);
}

static void say(struct daemon *d, struct http_request *r, struct said *s)
{
	struct err e;
	const struct apikey *key = scope_key(d, r);
	s->uid = http_peer(r)->uid;
	s->remote = http_peer(r)->remote;
	s->key = key ? key->name : NULL;
	if (check_id(s, &e) < 0 || runs_say(d->runs, http_param(r, 0), s, &e) < 0)
		problem_err(r, &e, PROBLEM_INTERNAL);
	else
		reply_said(r, s);
}

void api_run_answer(struct daemon *d, struct http_request *r)
{
	struct err e;
	auto_json struct json *body = read_body(r, answer_keys, ARRAY_LEN(answer_keys), &e);
	int answer = body ? said_answer_by_name(json_str(body, "answer", "")) : -1;
	if (body && answer < 0)
		(void)err_set(&e, -EINVAL, "answer: must be once, always or deny");
	if (answer < 0) {
		problem_err(r, &e, PROBLEM_BAD_REQUEST);
		return;
	}
	struct said s = {.what = SAID_ANSWER, .answer = (enum driver_answer)answer};
	s.id = http_param(r, 1);
	say(d, r, &s);
}

static void say_text(struct daemon *d, struct http_request *r, struct said *s)
{
	struct err e;
	auto_json struct json *body = read_body(r, message_keys, ARRAY_LEN(message_keys), &e);
	s->text = json_str(body, "text", "");
	s->len = strlen(s->text);
	if (body && s->len > SAID_TEXT_MAX)
		(void)err_set(&e, -E2BIG, "text: %zu bytes, at most %d are possible", s->len,
		        SAID_TEXT_MAX);
	else if (body && s->what == SAID_INPUT && s->len == 0)
		(void)err_set(&e, -EINVAL, "text: is empty");
	else if (body) {
		say(d, r, s);
		return;
	}
	problem_err(r, &e, PROBLEM_BAD_REQUEST);
}

void api_run_reply(struct daemon *d, struct http_request *r)
{
	say_text(d, r, &(struct said){.what = SAID_REPLY, .id = http_param(r, 1)});
}

void api_run_input(struct daemon *d, struct http_request *r)
{
	say_text(d, r, &(struct said){.what = SAID_INPUT, .id = ""});
}
