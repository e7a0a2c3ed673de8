#include "client/agentbox.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/version.h"
#include "client/events.h"
#include "client/library.h"
#include "client/url.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATH_ROOM = 8 << 10, ANSWER_ROOM = 64 << 20 };

/* ---- errors ---- */

int library_failed(struct agentbox_error *to, const struct err *e)
{
	if (to) {
		*to = (struct agentbox_error){.code = e->code, .retry_after = -1};
		(void)str_copy(to->text, sizeof(to->text), e->text);
	}
	return e->code;
}

static int code_of(int status)
{
	switch (status) {
	case 400:
		return -EINVAL;
	case 401:
	case 403:
		return -EACCES;
	case 404:
		return -ENOENT;
	case 409:
		return -EBUSY;
	case 413:
		return -E2BIG;
	case 429:
	case 503:
		return -EAGAIN;
	default:
		return -EIO;
	}
}

int library_refused(struct agentbox_error *to, struct client *c)
{
	struct err e = {0};
	const char *text = NULL;
	size_t n = 0;
	int status = client_status(c, &e);
	if (status < 0 || client_body(c, &text, &n, &e) < 0)
		return library_failed(to, &e);
	auto_json struct json *j = json_parse(text, n, NULL);
	const char *detail = json_str(j, "detail", json_str(j, "title", NULL));
	const char *hint = json_str(j, "hint", NULL);
	if (detail)
		(void)err_set(
		        &e, code_of(status), "%s%s%s", detail, hint ? ": " : "", hint ? hint : "");
	else
		(void)err_set(&e, code_of(status), "the daemon answered %d", status);
	(void)library_failed(to, &e);
	if (to) {
		to->status = status;
		to->retry_after =
		        client_retry_after(c) < INT_MAX ? (int)client_retry_after(c) : INT_MAX;
	}
	return e.code;
}

/* ---- whom ---- */

static const char *variable(const char *name)
{
	const char *v = getenv(name);
	return v && *v ? v : NULL;
}

static bool is_url(const char *where)
{
	return strncmp(where, "http://", 7) == 0 || strncmp(where, "https://", 8) == 0;
}

static char *copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

struct agentbox *agentbox_new(
        const char *where, const char *ca_file, const char *key_file, struct agentbox_error *e)
{
	struct err why = {0};
	if (!where)
		where = variable("AGENTBOX_URL");
	if (!where)
		where = variable("AGENTBOX_SOCKET");
	if (!where)
		where = AGENTBOX_SOCKET_PATH;
	if (!*where) {
		(void)err_set(&why, -EINVAL, "no socket and no URL to ask: the name is empty");
		(void)library_failed(e, &why);
		return NULL;
	}
	struct agentbox *ab = xnew(struct agentbox);
	*ab = (struct agentbox){
	        .where = xstrdup(where), .ca_file = copy(ca_file), .key_file = copy(key_file)};
	ab->peer = (struct client_peer){.socket = is_url(where) ? NULL : ab->where,
	        .url = is_url(where) ? ab->where : NULL,
	        .ca_file = ab->ca_file,
	        .key_file = ab->key_file};
	return ab;
}

void agentbox_free(struct agentbox *ab)
{
	if (!ab)
		return;
	free(ab->where);
	free(ab->ca_file);
	free(ab->key_file);
	free(ab);
}

const char *agentbox_version(void)
{
	return AGENTBOX_VERSION;
}

/* ---- requests ---- */

struct client *library_open(
        const struct agentbox *ab, const struct client_request *req, struct agentbox_error *e)
{
	struct err why = {0};
	auto_client struct client *c = client_open(&ab->peer, req, &why);
	int status = c ? client_status(c, &why) : why.code;
	if (status < 0)
		(void)library_failed(e, &why);
	else if (status >= 300)
		(void)library_refused(e, c);
	else if (status == 101 && !req->upgrade) {
		(void)err_set(&why, -EPROTO, "the daemon answered 101 to what did not ask for it");
		(void)library_failed(e, &why);
	} else
		return take(c);
	return NULL;
}

static char *ask(
        const struct agentbox *ab, const struct client_request *req, struct agentbox_error *e)
{
	struct err why = {0};
	const char *text = NULL;
	size_t n = 0;
	auto_client struct client *c = library_open(ab, req, e);
	if (!c)
		return NULL;
	if (client_body(c, &text, &n, &why) == 0 && !memchr(text, '\0', n))
		return xstrndup(text, n);
	if (!why.code)
		(void)err_set(&why, -EBADMSG, "the answer has a NUL in it: it is no text");
	(void)library_failed(e, &why);
	return NULL;
}

char *agentbox_request(const struct agentbox *ab, const char *method, const char *path,
        const char *body, struct agentbox_error *e)
{
	const struct client_request req = {
	        .method = method, .path = path, .body = body, .body_len = body ? strlen(body) : 0};
	return ask(ab, &req, e);
}

/* "/v1/runs/RUN" and what follows; owned. */
static char *run_path(const char *run, const char *segment, const char *rest)
{
	struct buf b = BUF_INIT(PATH_ROOM);
	buf_puts(&b, "/v1/runs/");
	url_encode(&b, run);
	if (segment)
		buf_printf(&b, "/%s", segment);
	if (rest) {
		buf_putc(&b, '/');
		url_encode_path(&b, rest);
	}
	if (!b.failed)
		return buf_take(&b);
	buf_done(&b);
	return NULL;
}

static int too_long(struct agentbox_error *e)
{
	struct err why = {0};
	(void)err_set(&why, -ENAMETOOLONG, "the name of the run or file is too long");
	return library_failed(e, &why);
}

/* One member as the whole body; the answer is not of interest. */
static int tell(const struct agentbox *ab, const char *path, const char *member, const char *value,
        struct agentbox_error *e)
{
	auto_buf struct buf body = BUF_INIT(LIMIT_HTTP_BODY);
	struct jw w = JW_INIT(&body);
	if (!path)
		return too_long(e);
	jw_open(&w, NULL, '{');
	jw_str(&w, member, value);
	jw_close(&w, '}');
	struct err why = {0};
	if (body.failed) {
		(void)err_set(&why, -E2BIG, "the request is larger than %d bytes", LIMIT_HTTP_BODY);
		return library_failed(e, &why);
	}
	struct agentbox_error mine = {.code = -EIO};
	auto_free char *answer = agentbox_request(ab, "POST", path, body.p, e ? e : &mine);
	return answer ? 0 : e ? e->code : mine.code;
}

/* ---- runs ---- */

/* 0, or negative with *e. */
static int write_run(struct buf *body, const struct agentbox_run *r, struct err *e)
{
	if (r->size < sizeof(*r) || !r->user || !r->goal || !r->harness || !r->prompt)
		return err_set(
		        e, -EINVAL, "a run needs its size, and a user, goal, harness and prompt");
	auto_json struct json *params =
	        r->params ? json_parse(r->params, strlen(r->params), e) : NULL;
	if (r->params && !params)
		return err_wrap(e, "params");
	char key[ID_MAX];
	id_new("lib", key);
	struct jw w = JW_INIT(body);
	jw_open(&w, NULL, '{');
	jw_open(&w, "session", '{');
	jw_str(&w, "userId", r->user);
	jw_str(&w, "goalId", r->goal);
	jw_close(&w, '}');
	jw_str(&w, "harness", r->harness);
	jw_str(&w, "prompt", r->prompt);
	jw_str(&w, "idempotencyKey", r->key ? r->key : key);
	if (r->priority)
		jw_int(&w, "priority", r->priority);
	if (params)
		jw_tree(&w, "params", params);
	jw_close(&w, '}');
	return body->failed
	               ? err_set(e, -E2BIG, "the request is larger than %d bytes", LIMIT_HTTP_BODY)
	               : 0;
}

char *agentbox_start(
        const struct agentbox *ab, const struct agentbox_run *run, struct agentbox_error *e)
{
	struct err why = {0};
	auto_buf struct buf body = BUF_INIT(LIMIT_HTTP_BODY);
	if (write_run(&body, run, &why) < 0) {
		(void)library_failed(e, &why);
		return NULL;
	}
	auto_free char *text = agentbox_request(ab, "POST", "/v1/runs", body.p, e);
	if (!text)
		return NULL;
	auto_json struct json *j = json_parse(text, strlen(text), NULL);
	const char *id = json_str(j, "runId", "");
	if (id_valid(id, "run"))
		return xstrdup(id);
	(void)err_set(&why, -EPROTO, "the daemon's answer names no run");
	(void)library_failed(e, &why);
	return NULL;
}

int agentbox_cancel(const struct agentbox *ab, const char *run, struct agentbox_error *e)
{
	struct agentbox_error mine = {.code = -EIO};
	struct agentbox_error *to = e ? e : &mine;
	auto_free char *path = run_path(run, NULL, NULL);
	if (!path)
		return too_long(e);
	auto_free char *answer = agentbox_request(ab, "DELETE", path, NULL, to);
	return answer ? 0 : to->code;
}

int agentbox_permit(const struct agentbox *ab, const char *run, const char *id, const char *answer,
        struct agentbox_error *e)
{
	auto_free char *path = run_path(run, "permissions", id);
	return tell(ab, path, "answer", answer, e);
}

int agentbox_say(
        const struct agentbox *ab, const char *run, const char *text, struct agentbox_error *e)
{
	auto_free char *path = run_path(run, "input", NULL);
	return tell(ab, path, "text", text, e);
}

/* A pipe of the caller's may have lost its reader: that is an error, and no signal. */
struct no_sigpipe {
	sigset_t before;
	bool pending;
};

static void no_sigpipe_begin(struct no_sigpipe *s)
{
	sigset_t pipe, pending;
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	s->pending = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
	(void)pthread_sigmask(SIG_BLOCK, &pipe, &s->before); /* fails for no valid first argument */
}

static void no_sigpipe_end(const struct no_sigpipe *s)
{
	const struct timespec now = {0, 0};
	sigset_t pipe;
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	if (!s->pending)
		(void)sigtimedwait(&pipe, NULL, &now); /* ours, if there is one */
	(void)pthread_sigmask(SIG_SETMASK, &s->before, NULL);
}

int agentbox_artifact(const struct agentbox *ab, const char *run, const char *file, int fd,
        struct agentbox_error *e)
{
	struct agentbox_error mine = {.code = -EIO};
	struct agentbox_error *to = e ? e : &mine;
	struct err why = {0};
	auto_free char *path = run_path(run, "artifacts", file);
	if (!path)
		return too_long(e);
	const struct client_request req = {.method = "GET", .path = path, .accept = "*/*"};
	auto_client struct client *c = library_open(ab, &req, to);
	if (!c)
		return to->code;
	struct no_sigpipe quiet;
	no_sigpipe_begin(&quiet);
	int r = client_copy(c, fd, UINT64_MAX, NULL, &why);
	no_sigpipe_end(&quiet);
	return r < 0 ? library_failed(e, &why) : 0;
}

/* Of run.done; owned, or NULL with *e. */
static char *result_of(const struct json *done, struct agentbox_error *e)
{
	struct err why = {0};
	auto_buf struct buf b = BUF_INIT(ANSWER_ROOM);
	const struct json *result = json_get(done, "result");
	if (json_is_object(result) && json_print(result, &b) == 0)
		return buf_take(&b);
	(void)err_set(&why, -EPROTO, "the run is over, and its last event has no result");
	(void)library_failed(e, &why);
	return NULL;
}

static int not_over(int timeout_ms, struct agentbox_error *e)
{
	struct err why = {0};
	(void)err_set(&why, -ETIMEDOUT, "the run was not over in %d ms", timeout_ms);
	return library_failed(e, &why);
}

char *agentbox_wait(
        const struct agentbox *ab, const char *run, int timeout_ms, struct agentbox_error *e)
{
	int64_t until = clock_mono_ms() + timeout_ms;
	struct agentbox_events *v = agentbox_events_open(ab, run, 0, e);
	const char *text;
	size_t n;
	char *result = NULL;
	int r = v ? 1 : 0;
	while (r > 0) {
		int64_t left = timeout_ms < 0 ? -1 : until - clock_mono_ms();
		bool last = timeout_ms >= 0 && left <= 0;
		r = agentbox_events_next(v, last ? 0 : (int)left, &text, &n, e);
		auto_json struct json *j = r > 0 ? json_parse(text, n, NULL) : NULL;
		if (strcmp(json_str(j, "type", ""), "run.done") == 0) {
			result = result_of(j, e);
			break;
		}
		/* Also where events come all the time, and the last is not among them. */
		if (r == -ETIMEDOUT || (r > 0 && last))
			r = not_over(timeout_ms, e);
	}
	agentbox_events_close(v);
	return result;
}
