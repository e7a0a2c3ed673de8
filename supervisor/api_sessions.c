#include "supervisor/api.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "supervisor/body.h"
#include "supervisor/daemon.h"
#include "supervisor/http.h"
#include "supervisor/loop.h"
#include "supervisor/page.h"
#include "supervisor/problem.h"
#include "supervisor/scope.h"
#include "supervisor/sessions.h"
#include "supervisor/store.h"
#include "supervisor/stream.h"
#include "supervisor/visit.h"

#include <string.h>

enum {
	SESSION_JSON_MAX = 64 << 10,
	TALKS_MAX = 32,
	TALK_ID_MAX = 256,
};

void api_session_list(struct daemon *d, struct http_request *r)
{
	struct err e;
	struct page page;
	auto_scope_view struct scope_view seen = {.user = NULL};
	if (scope_view(d, r, http_query(r, "tenant"), http_query(r, "user"), &seen, &e) < 0 ||
	        page_read(r, "ses", &page, &e) < 0) {
		problem_err(r, &e, PROBLEM_BAD_REQUEST);
		return;
	}
	struct sessions_filter f = {
	        .user = seen.user,
	        .view = &seen.view,
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
	if (sessions_show_disk(d->sessions, http_param(r, 0), &b, &e) < 0)
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
	char owner[OWNER_MAX];
	const char *text = http_body(r, &n);
	auto_json struct json *body = body_parse(text, n, &e);
	if (!body || body_check(body, "", keys, ARRAY_LEN(keys), &e) < 0 ||
	        session_part_check("userId", json_str(body, "userId", ""), &e) < 0 ||
	        session_part_check("goalId", json_str(body, "goalId", ""), &e) < 0) {
		problem_err(r, &e, PROBLEM_BAD_REQUEST);
		return;
	}
	if (scope_owner(d, r, json_str(body, "userId", ""), owner, &e) < 0)
		problem_err(r, &e, PROBLEM_INTERNAL);
	else
		sessions_make(
		        d->sessions, owner, json_str(body, "goalId", ""), on_made, pending_new(r));
}

static void on_changed(void *ctx, int rc, const struct err *e)
{
	auto_free struct pending *p = ctx;
	if (!p->request)
		return;
	if (rc < 0)
		problem_err(p->request, e, PROBLEM_INTERNAL);
	else
		http_reply(p->request, 204, NULL, NULL);
}

struct leave {
	struct daemon *d;
	struct pending *pending; /* owned until the deletion begins */
	char id[ID_MAX];
	int64_t until_ms;
	struct op look;
};

static void look_again(struct op *op, int res, uint32_t flags);

static void try_to_delete(struct leave *x)
{
	if (x->pending->request && visit_passes(x->d, x->id) && clock_mono_ms() < x->until_ms) {
		loop_timeout(x->d->loop, &x->look, VISIT_LOOK_MS, look_again);
		return;
	}
	if (x->pending->request)
		sessions_delete(x->d->sessions, x->id, on_changed, take(x->pending));
	free(x->pending);
	free(x);
}

static void look_again(struct op *op, int res, uint32_t flags)
{
	(void)res;
	(void)flags;
	try_to_delete(container_of(op, struct leave, look));
}

void api_session_delete(struct daemon *d, struct http_request *r)
{
	struct leave *x = xnew(struct leave);
	x->d = d;
	x->pending = pending_new(r);
	(void)str_copy(x->id, sizeof(x->id), http_param(r, 0)); /* a longer one is not there */
	x->until_ms = clock_mono_ms() + VISIT_PASSES_MS;
	try_to_delete(x);
}

void api_session_pin(struct daemon *d, struct http_request *r)
{
	sessions_pin(d->sessions, http_param(r, 0), true, on_changed, pending_new(r));
}

void api_session_unpin(struct daemon *d, struct http_request *r)
{
	sessions_pin(d->sessions, http_param(r, 0), false, on_changed, pending_new(r));
}

/* ---- what its agents go on with ---- */

static void put_talk(void *ctx, const struct store_talk *x)
{
	struct jw *w = ctx;
	jw_open(w, NULL, '{');
	jw_str(w, "backend", x->backend);
	jw_str(w, "id", x->id);
	if (x->run[0])
		jw_str(w, "runId", x->run);
	jw_close(w, '}');
}

static void count_runs(void *ctx, const struct store_session *s)
{
	*(uint64_t *)ctx = s->runs;
}

void api_session_talks(struct daemon *d, struct http_request *r)
{
	struct err e;
	uint64_t runs;
	const char *id = http_param(r, 0);
	auto_buf struct buf b = BUF_INIT(SESSION_JSON_MAX);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_open(&w, "conversations", '[');
	int rc = store_session(d->store, id, count_runs, &runs, &e);
	if (rc == 0)
		rc = store_talks(d->store, id, put_talk, &w, &e);
	jw_close(&w, ']');
	jw_close(&w, '}');
	if (rc < 0)
		problem_err(r, &e, PROBLEM_INTERNAL);
	else
		http_reply(r, 200, "application/json", &b);
}

/* It stands among an agent's arguments at last; each driver looks again, by its own rules. */
static bool talk_id_ok(const char *id)
{
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:");
	return n > 0 && n <= TALK_ID_MAX && !id[n] && id[0] != '-';
}

static int read_talk(const struct json *x, const struct store_talk *before, size_t n,
        struct store_talk *ret, struct err *e)
{
	static const struct body_key keys[] = {
	        {"backend", BODY_STRING, true},
	        {"id", BODY_STRING, true},
	};
	if (!json_is_object(x))
		return err_set(e, -EINVAL, "conversations[%zu]: must be an object", n);
	int rc = body_check(x, "conversations[]", keys, ARRAY_LEN(keys), e);
	if (rc < 0)
		return rc;
	*ret = (struct store_talk){json_str(x, "backend", ""), json_str(x, "id", ""), ""};
	if (!name_valid(ret->backend))
		return err_set(e, -EINVAL, "conversations[%zu].backend is no name", n);
	if (!talk_id_ok(ret->id))
		return err_set(e, -EINVAL, "conversations[%zu].id is no id of a conversation", n);
	for (size_t i = 0; i < n; i++)
		if (strcmp(before[i].backend, ret->backend) == 0)
			return err_set(e, -EINVAL, "conversations[%zu]: '%s' has one already", n,
			        ret->backend);
	return 0;
}

/* The number of them, or -EINVAL. */
static int read_talks(const struct json *body, struct store_talk all[TALKS_MAX], struct err *e)
{
	static const struct body_key keys[] = {{"conversations", BODY_ARRAY, true}};
	int n = 0;
	int rc = body_check(body, "", keys, ARRAY_LEN(keys), e);
	const struct json *x = rc < 0 ? NULL : json_first(json_get(body, "conversations"));
	for (; x && rc == 0; x = json_next(x), n++)
		rc = n < TALKS_MAX ? read_talk(x, all, (size_t)n, &all[n], e)
		                   : err_set(e, -EINVAL, "conversations: at most %d", TALKS_MAX);
	return rc < 0 ? rc : n;
}

/* One that has runs has conversations of its own, and one that goes gets nothing more. */
static int may_take_talks(struct daemon *d, const char *id, struct err *e)
{
	uint64_t runs = 0;
	int rc = store_session(d->store, id, count_runs, &runs, e);
	if (rc < 0)
		return rc;
	const struct session *x = sessions_live(d->sessions, id);
	if (runs || (x ? x->lane.busy || x->piped : !sessions_idle(d->sessions, id)))
		return err_set(e, -EBUSY,
		        "session %s has runs, or is being deleted: conversations are brought into "
		        "a new one",
		        id);
	return 0;
}

void api_session_take_talks(struct daemon *d, struct http_request *r)
{
	struct err e;
	size_t n;
	struct store_talk all[TALKS_MAX];
	const char *text = http_body(r, &n), *id = http_param(r, 0);
	auto_json struct json *body = body_parse(text, n, &e);
	int count = body ? read_talks(body, all, &e) : -EINVAL;
	if (count < 0)
		problem_err(r, &e, PROBLEM_BAD_REQUEST);
	else if (may_take_talks(d, id, &e) < 0)
		problem_err(r, &e, PROBLEM_INTERNAL);
	else
		store_take_talks(d->store, id, all, (size_t)count, on_changed, pending_new(r));
}
