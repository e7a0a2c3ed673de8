#include "supervisor/api.h"

#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "supervisor/body.h"
#include "supervisor/daemon.h"
#include "supervisor/http.h"
#include "supervisor/page.h"
#include "supervisor/problem.h"
#include "supervisor/sessions.h"
#include "supervisor/stream.h"

enum { SESSION_JSON_MAX = 64 << 10 };

void api_session_list(struct daemon *d, struct http_request *r)
{
	struct err e;
	struct page page;
	if (page_read(r, "ses", &page, &e) < 0) {
		problem_err(r, &e, PROBLEM_BAD_REQUEST);
		return;
	}
	struct sessions_filter f = {
	        .user = http_query(r, "user"),
	        .goal = http_query(r, "goal"),
	        .cursor = page.cursor,
	        .limit = page.limit,
	};
	page_open(&page, "sessions");
	if (sessions_list(d->sessions, &f, &page.json, page.next, &e) < 0) {
		page_done(&page);
		problem_err(r, &e, PROBLEM_INTERNAL);
		return;
	}
	page_reply(r, &page);
}

void api_session_show(struct daemon *d, struct http_request *r)
{
	struct err e;
	auto_buf struct buf b = BUF_INIT(SESSION_JSON_MAX);
	if (sessions_show(d->sessions, http_param(r, 0), &b, &e) < 0)
		problem_err(r, &e, PROBLEM_INTERNAL);
	else
		http_reply(r, 200, "application/json", &b);
}

void api_session_events(struct daemon *d, struct http_request *r)
{
	struct err e;
	struct stream_spec s = {.from = 0};
	auto_buf struct buf known = BUF_INIT(SESSION_JSON_MAX);
	const char *id = http_param(r, 0);
	if (sessions_show(d->sessions, id, &known, &e) < 0 || stream_wanted(r, &s, &e) < 0) {
		problem_err(r, &e, PROBLEM_INTERNAL);
		return;
	}
	(void)str_copy(s.session, sizeof(s.session), id);
	stream_events(d, r, &s);
}

/* ---- make and delete: answered after the commit ---- */

struct pending {
	struct http_request *request; /* borrowed; NULL once the client left */
};

static void on_client_gone(void *ctx)
{
	((struct pending *)ctx)->request = NULL;
}

static struct pending *pending_new(struct http_request *r)
{
	struct pending *p = xnew(struct pending);
	p->request = r;
	http_on_gone(r, on_client_gone, p);
	return p;
}

static void on_made(void *ctx, int rc, const char *id, const struct err *e)
{
	auto_free struct pending *p = ctx;
	if (!p->request)
		return;
	if (rc < 0) {
		problem_err(p->request, e, PROBLEM_INTERNAL);
		return;
	}
	auto_buf struct buf b = BUF_INIT(256);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_str(&w, "sessionId", id);
	jw_close(&w, '}');
	http_reply(p->request, 200, "application/json", &b);
}

void api_session_create(struct daemon *d, struct http_request *r)
{
	static const struct body_key keys[] = {
	        {"userId", BODY_STRING, true},
	        {"goalId", BODY_STRING, true},
	};
	struct err e;
	size_t n;
	const char *text = http_body(r, &n);
	auto_json struct json *body = body_parse(text, n, &e);
	if (!body || body_check(body, "", keys, ARRAY_LEN(keys), &e) < 0 ||
	        session_part_check("userId", json_str(body, "userId", ""), &e) < 0 ||
	        session_part_check("goalId", json_str(body, "goalId", ""), &e) < 0) {
		problem_err(r, &e, PROBLEM_BAD_REQUEST);
		return;
	}
	sessions_make(d->sessions, json_str(body, "userId", ""), json_str(body, "goalId", ""),
	        on_made, pending_new(r));
}

static void on_deleted(void *ctx, int rc, const struct err *e)
{
	auto_free struct pending *p = ctx;
	if (!p->request)
		return;
	if (rc < 0)
		problem_err(p->request, e, PROBLEM_INTERNAL);
	else
		http_reply(p->request, 204, NULL, NULL);
}

void api_session_delete(struct daemon *d, struct http_request *r)
{
	sessions_delete(d->sessions, http_param(r, 0), on_deleted, pending_new(r));
}
