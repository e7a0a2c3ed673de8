#include "abctl/start.h"
#include "abctl/checkout.h"
#include "abctl/fail.h"
#include "base/neutral.h"
#include "abctl/pairs.h"
#include "abctl/query.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"

#include <string.h>

int start_session_check(const char *session)
{
	const char *slash = session ? strchr(session, '/') : NULL;
	return slash && slash > session && slash[1]
	               ? 0
	               : fail_usage("give the session as -s USER/GOAL");
}

/* The body of POST /v1/runs. */
static int write_request(struct buf *body, const struct start *s)
{
	int r = start_session_check(s->session);
	if (r)
		return r;
	const char *slash = strchr(s->session, '/');
	if (!neutral_is_text(s->prompt, s->prompt_len))
		return fail_usage("the prompt is not UTF-8 text");
	auto_free char *user = xstrndup(s->session, (size_t)(slash - s->session));
	/* Asking twice after a lost answer must not start two runs. */
	char key[ID_MAX];
	id_new("cli", key);
	struct jw w = JW_INIT(body);
	jw_open(&w, NULL, '{');
	jw_open(&w, "session", '{');
	jw_str(&w, "userId", user);
	jw_str(&w, "goalId", slash + 1);
	jw_close(&w, '}');
	jw_str(&w, "harness", s->harness);
	jw_bytes(&w, "prompt", s->prompt, s->prompt_len);
	jw_str(&w, "idempotencyKey", s->key ? s->key : key);
	if (s->priority)
		jw_int(&w, "priority", s->priority);
	if (s->repo) {
		jw_open(&w, "repo", '{');
		jw_str(&w, "url", s->repo->url);
		jw_str(&w, "bundle", s->repo->bundle);
		jw_str(&w, "ref", s->repo->ref);
		jw_close(&w, '}');
	}
	r = s->params ? pairs_object(&w, "params", "param", s->params) : 0;
	jw_close(&w, '}');
	if (r == 0 && body->failed)
		r = fail_usage("the request is larger than %d bytes", LIMIT_HTTP_BODY);
	return r;
}

int start_run(const struct cli *cli, const struct start *s, struct json **ret)
{
	auto_buf struct buf body = BUF_INIT(LIMIT_HTTP_BODY);
	int r = write_request(&body, s);
	if (r)
		return r;
	struct client_request req = {
	        .method = "POST", .path = "/v1/runs", .body = body.p, .body_len = body.len};
	req.again = true; /* it has a key */
	auto_json struct json *j = NULL;
	r = query_send(cli, &req, &j);
	if (r)
		return r;
	if (!id_valid(json_str(j, "runId", ""), "run"))
		return fail_system("the daemon's answer names no run");
	*ret = take(j);
	return 0;
}
