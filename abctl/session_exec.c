#include "abctl/session_exec.h"

#include "abctl/attach.h"
#include "abctl/fail.h"
#include "abctl/query.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mem.h"

enum { BODY_MAX = 64 << 10 };

int session_make(const struct cli *cli, const char *user, const char *goal, char **ret)
{
	auto_buf struct buf body = BUF_INIT(BODY_MAX);
	struct jw w = JW_INIT(&body);
	jw_open(&w, NULL, '{');
	jw_str(&w, "userId", user);
	jw_str(&w, "goalId", goal);
	jw_close(&w, '}');
	if (body.failed)
		return fail_usage("'%.64s...' is too long for a session", goal);
	const struct client_request req = {
	        .method = "POST", .path = "/v1/sessions", .body = body.p, .body_len = body.len};
	auto_json struct json *answer = NULL;
	int r = query_send(cli, &req, &answer);
	if (r)
		return r;
	const char *id = json_str(answer, "sessionId", "");
	if (!id_valid(id, "ses"))
		return fail_system("the daemon's answer names no session");
	*ret = xstrdup(id);
	return 0;
}

int session_exec(const struct cli *cli, const char *session, const struct session_command *c)
{
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX), body = BUF_INIT(BODY_MAX);
	buf_puts(&path, "/v1/sessions/");
	url_encode(&path, session);
	buf_puts(&path, "/exec");
	struct jw w = JW_INIT(&body);
	jw_open(&w, NULL, '{');
	jw_open(&w, "argv", '[');
	for (const char *const *arg = c->argv; *arg; arg++)
		jw_str(&w, NULL, *arg);
	jw_close(&w, ']');
	jw_str(&w, "policy", c->policy);
	jw_str(&w, "snapshot", c->snapshot);
	jw_close(&w, '}');
	if (body.failed)
		return fail_usage("the command is larger than %d bytes", BODY_MAX);
	const struct attach_terminal t = {.quiet = c->quiet};
	return attach_run(cli, path.p, &body, &t, c->name);
}
