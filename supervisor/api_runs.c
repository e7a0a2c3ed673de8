#include "supervisor/api.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "supervisor/body.h"
#include "supervisor/daemon.h"
#include "supervisor/harnesses.h"
#include "supervisor/http.h"
#include "supervisor/page.h"
#include "supervisor/problem.h"
#include "supervisor/repo.h"
#include "supervisor/runs.h"
#include "supervisor/scope.h"
#include "supervisor/stream.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	PARAMS = 64, /* template parameters of one run */
	PRIORITY_MAX = 9,
};

/* ---- create ---- */

enum answer { ANSWER_ACCEPTED, ANSWER_RESULT, ANSWER_STREAM };

struct create {
	struct daemon *d;
	struct http_request *request; /* borrowed; NULL once the client left */
	enum answer answer;
	struct stream_spec stream;
	char owner[OWNER_MAX];
};

static void on_client_gone(void *ctx)
{
	struct create *c = ctx;
	c->request = NULL; /* the run goes on: leaving is not cancelling */
}

static void reply_ids(
        struct http_request *r, int status, const char *run, const char *session, const char *state)
{
	auto_buf struct buf b = BUF_INIT(1024);
	char location[ID_MAX + 16];
	snprintf(location, sizeof(location), "/v1/runs/%s", run);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_str(&w, "runId", run);
	jw_str(&w, "sessionId", session);
	jw_str(&w, "status", state);
	jw_close(&w, '}');
	http_add_header(r, "Location", location);
	http_reply(r, status, "application/json", &b);
}

static void reply_result(struct daemon *d, struct http_request *r, const char *run)
{
	struct err e;
	auto_buf struct buf b = BUF_INIT(LIMIT_EVENT);
	if (runs_result(d->runs, run, &b, &e) < 0)
		problem_err(r, &e, PROBLEM_INTERNAL);
	else
		http_reply(r, 200, "application/json", &b);
}

static void on_created(void *ctx, int rc, const struct run_info *info, const struct err *e)
{
	struct create *c = ctx;
	struct http_request *r = c->request;
	if (!r) {
		free(c);
		return;
	}
	if (rc < 0) {
		problem_err_after(
		        r, e, PROBLEM_HARNESS_INVALID, runs_retry_after(c->d->runs, c->owner));
	} else if (c->answer == ANSWER_ACCEPTED) {
		reply_ids(r, 202, info->id, info->session, info->status);
	} else if (c->answer == ANSWER_RESULT && info->finished) {
		reply_result(c->d, r, info->id); /* its last event may not be kept any more */
	} else if (c->answer == ANSWER_RESULT) {
		http_add_header(r, "X-Run-Id", info->id);
		stream_result(c->d, r, info->session, info->id, info->from_seq);
	} else {
		(void)str_copy(c->stream.session, sizeof(c->stream.session), info->session);
		(void)str_copy(c->stream.run, sizeof(c->stream.run), info->id);
		if (c->stream.from < info->from_seq)
			c->stream.from = info->from_seq;
		c->stream.follow = !info->finished;
		http_add_header(r, "X-Run-Id", info->id);
		stream_events(c->d, r, &c->stream);
	}
	free(c);
}

/* Fills q with pointers into `body`. */
static int read_request(const struct json *body, struct run_request *q, struct err *e)
{
	static const struct body_key top[] = {
	        {"session", BODY_OBJECT, true},
	        {"harness", BODY_STRING, true},
	        {"prompt", BODY_STRING, true},
	        {"params", BODY_OBJECT, false},
	        {"idempotencyKey", BODY_STRING, false},
	        {"priority", BODY_INTEGER, false},
	        {"repo", BODY_OBJECT, false},
	};
	static const struct body_key pair[] = {
	        {"userId", BODY_STRING, true},
	        {"goalId", BODY_STRING, true},
	};
	const struct json *session = json_get(body, "session");
	if (body_check(body, "", top, ARRAY_LEN(top), e) < 0 ||
	        body_check(session, "session", pair, ARRAY_LEN(pair), e) < 0)
		return e->code;
	q->user = json_str(session, "userId", "");
	q->goal = json_str(session, "goalId", "");
	if (session_part_check("session.userId", q->user, e) < 0 ||
	        session_part_check("session.goalId", q->goal, e) < 0)
		return e->code;
	q->harness = json_str(body, "harness", "");
	q->prompt = json_str(body, "prompt", "");
	q->prompt_len = strlen(q->prompt);
	if (q->prompt_len > LIMIT_PROMPT)
		return err_set(e, -E2BIG, "prompt: %zu bytes, at most %d are possible",
		        q->prompt_len, LIMIT_PROMPT);
	q->idempotency_key = json_str(body, "idempotencyKey", NULL);
	if (q->idempotency_key && session_part_check("idempotencyKey", q->idempotency_key, e) < 0)
		return e->code;
	int64_t priority = json_int(body, "priority", 0);
	if (priority < 0 || priority > PRIORITY_MAX)
		return err_set(e, -EINVAL, "priority: must be 0 to %d", PRIORITY_MAX);
	q->priority = (int)priority;
	return 0;
}

static int read_params(const struct json *params, struct run_request *q, const char *names[PARAMS],
        const char *values[PARAMS], struct err *e)
{
	for (const struct json *v = json_first(params); v; v = json_next(v)) {
		if (q->nparams == PARAMS)
			return err_set(e, -E2BIG, "params: at most %d are possible", PARAMS);
		if (!json_text(v))
			return err_set(e, -EINVAL, "params.%.64s: must be a string", json_key(v));
		names[q->nparams] = json_key(v);
		values[q->nparams++] = json_text(v);
	}
	q->param_names = names;
	q->param_values = values;
	return 0;
}

static int read_repo(
        const struct json *body, struct run_request *q, struct repo_ask *own, struct err *e)
{
	static const struct body_key keys[] = {
	        {"url", BODY_STRING, false},
	        {"bundle", BODY_STRING, false},
	        {"ref", BODY_STRING, false},
	};
	const struct json *repo = json_get(body, "repo");
	if (!repo)
		return 0;
	if (body_check(repo, "repo", keys, ARRAY_LEN(keys), e) < 0 ||
	        repo_read(repo, "repo", own, e) < 0)
		return e->code;
	q->repo = own;
	return 0;
}

static int read_answer(struct http_request *r, struct create *c, struct err *e)
{
	const char *accept = http_header(r, "Accept");
	bool wait;
	if (stream_wanted(r, &c->stream, e) < 0 || http_query_flag(r, "wait", &wait, e) < 0)
		return e->code;
	c->stream.follow = true;
	if (accept &&
	        (strstr(accept, "text/event-stream") || strstr(accept, "application/x-ndjson")))
		c->answer = ANSWER_STREAM;
	else
		c->answer = wait ? ANSWER_RESULT : ANSWER_ACCEPTED;
	return 0;
}

void api_run_create(struct daemon *d, struct http_request *r)
{
	struct err e;
	size_t n;
	const char *text = http_body(r, &n);
	auto_json struct json *body = body_parse(text, n, &e);
	auto_free struct create *c = xnew(struct create);
	struct run_request q = {.user = NULL};
	const char *names[PARAMS], *values[PARAMS];
	char owner[OWNER_MAX];
	auto_repo_ask struct repo_ask repo = {.url = NULL};
	c->d = d;
	c->request = r;
	if (!body || read_request(body, &q, &e) < 0 ||
	        read_params(json_get(body, "params"), &q, names, values, &e) < 0 ||
	        read_repo(body, &q, &repo, &e) < 0 || read_answer(r, c, &e) < 0) {
		problem_err(r, &e, PROBLEM_BAD_REQUEST);
		return;
	}
	harnesses_catch_up(d->harnesses);
	if (scope_owner(d, r, q.user, owner, &e) < 0 || scope_may_start(d, r, q.harness, &e) < 0) {
		problem_err(r, &e, PROBLEM_HARNESS_INVALID);
		return;
	}
	if (scope_admit(d, r) < 0)
		return;
	q.user = owner;
	q.traceparent = http_header(r, "Traceparent");
	q.tracestate = http_header(r, "Tracestate");
	(void)str_copy(c->owner, sizeof(c->owner), owner);
	http_on_gone(r, on_client_gone, c);
	runs_create(d->runs, &q, on_created, take(c));
}

/* ---- one run ---- */

void api_run_show(struct daemon *d, struct http_request *r)
{
	struct err e;
	auto_buf struct buf b = BUF_INIT(LIMIT_EVENT);
	if (runs_show(d->runs, http_param(r, 0), &b, &e) < 0)
		problem_err(r, &e, PROBLEM_INTERNAL);
	else
		http_reply(r, 200, "application/json", &b);
}

void api_run_cancel(struct daemon *d, struct http_request *r)
{
	struct err e;
	struct run_info info;
	const char *id = http_param(r, 0);
	bool now;
	if (runs_info(d->runs, id, &info, &e) < 0 || http_query_flag(r, "now", &now, &e) < 0) {
		problem_err(r, &e, PROBLEM_INTERNAL);
		return;
	}
	int rc = runs_cancel(d->runs, id, now, &e);
	if (rc == -EALREADY)
		problem_reply(r, PROBLEM_CONFLICT, NULL, "%s", e.text);
	else if (rc < 0)
		problem_err(r, &e, PROBLEM_INTERNAL);
	else
		reply_ids(r, 202, info.id, info.session, "cancelling");
}

void api_run_events(struct daemon *d, struct http_request *r)
{
	struct err e;
	struct run_info info;
	struct stream_spec s = {.from = 0};
	if (runs_info(d->runs, http_param(r, 0), &info, &e) < 0 || stream_wanted(r, &s, &e) < 0) {
		problem_err(r, &e, PROBLEM_INTERNAL);
		return;
	}
	(void)str_copy(s.session, sizeof(s.session), info.session);
	(void)str_copy(s.run, sizeof(s.run), info.id);
	if (s.from < info.from_seq)
		s.from = info.from_seq;
	if (info.finished)
		s.follow = false; /* nothing more comes, and its last event may be gone */
	stream_events(d, r, &s);
}

/* ---- list ---- */

static int check_status(const char *s, struct err *e)
{
	if (!s || strcmp(s, "queued") == 0 || strcmp(s, "running") == 0 ||
	        run_status_by_name(s) >= 0)
		return 0;
	return err_set(
	        e, -EINVAL, "status: '%.32s' is none of queued, running and those of a result", s);
}

/* A query of a time, as the least id of it; `to` stays "" without one. */
static int read_time(struct http_request *r, const char *name, char to[ID_MAX], struct err *e)
{
	static const char rest[] = "0000-00-00T00:00:00.000Z";
	const char *text = http_query(r, name);
	char whole[sizeof(rest)];
	to[0] = '\0';
	if (!text)
		return 0;
	/* a day, or without milliseconds */
	size_t n = strlen(text);
	bool day = n == 10, second = n == 20 && text[19] == 'Z';
	memcpy(whole, rest, sizeof(whole));
	if (day || second)
		memcpy(whole, text, day ? 10 : 19);
	int64_t ms = day || second ? clock_from_rfc3339(whole, sizeof(whole) - 1)
	                           : clock_from_rfc3339(text, n);
	if (ms < 0)
		return err_set(e, -EINVAL,
		        "%s: '%.40s' is no time (2026-11-30, 2026-11-30T09:00:00Z)", name, text);
	id_from("run", ms, to);
	return 0;
}

void api_run_list(struct daemon *d, struct http_request *r)
{
	struct err e;
	struct page page;
	char since[ID_MAX], until[ID_MAX];
	auto_scope_view struct scope_view seen = {.user = NULL};
	if (scope_view(d, r, http_query(r, "tenant"), http_query(r, "user"), &seen, &e) < 0 ||
	        page_read(r, "run", &page, &e) < 0 || read_time(r, "since", since, &e) < 0 ||
	        read_time(r, "until", until, &e) < 0 ||
	        check_status(http_query(r, "status"), &e) < 0) {
		problem_err(r, &e, PROBLEM_BAD_REQUEST);
		return;
	}
	struct runs_filter f = {
	        .user = seen.user,
	        .view = &seen.view,
	        .goal = http_query(r, "goal"),
	        .session = http_query(r, "session"),
	        .harness = http_query(r, "harness"),
	        .status = http_query(r, "status"),
	        .since = since[0] ? since : NULL,
	        .until = until[0] ? until : NULL,
	        .cursor = page.cursor,
	        .limit = page.limit,
	};
	page_open(&page, "runs");
	if (runs_list(d->runs, &f, &page.json, page.next, &e) < 0) {
		page_done(&page);
		problem_err(r, &e, PROBLEM_INTERNAL);
		return;
	}
	page_reply(r, &page);
}
