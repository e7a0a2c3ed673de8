/* API keys: made, shown, revoked by root. */
#include "supervisor/api.h"

#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "supervisor/body.h"
#include "supervisor/daemon.h"
#include "supervisor/harnesses.h"
#include "supervisor/http.h"
#include "supervisor/apikeys.h"
#include "supervisor/policies.h"
#include "supervisor/problem.h"

#include <string.h>

enum { LIST_MAX = 64 << 20 /* APIKEYS_MAX keys of three lists each, as large as can be */ };

struct pending {
	struct http_request *request; /* borrowed; NULL once the client left */
	struct apikeys *keys;         /* borrowed */
	char id[ID_MAX], secret[APIKEY_SECRET_MAX];
	struct buf warnings; /* as members of an array */
};

static void on_client_gone(void *ctx)
{
	((struct pending *)ctx)->request = NULL;
}

static struct pending *pending_new(struct daemon *d, struct http_request *r)
{
	struct pending *p = xnew(struct pending);
	p->request = r;
	p->keys = d->keys;
	p->warnings = (struct buf)BUF_INIT(LIST_MAX);
	return p;
}

static void pending_free(struct pending *p)
{
	explicit_bzero(p->secret, sizeof(p->secret));
	buf_done(&p->warnings);
	free(p);
}

static void reply_made(struct pending *p)
{
	struct err e;
	auto_buf struct buf b = BUF_INIT(LIST_MAX), about = BUF_INIT(LIST_MAX);
	struct jw w = JW_INIT(&b), inner = JW_INIT(&about);
	if (apikeys_show(p->keys, p->id, &inner, &e) < 0) { /* revoked before it was told */
		problem_err(p->request, &e, PROBLEM_INTERNAL);
		return;
	}
	jw_open(&w, NULL, '{');
	jw_str(&w, "key", p->secret);
	jw_raw(&w, "about", about.p, about.len);
	jw_open(&w, "warnings", '[');
	if (p->warnings.len)
		jw_raw(&w, NULL, p->warnings.p, p->warnings.len);
	jw_close(&w, ']');
	jw_close(&w, '}');
	http_add_header(p->request, "Cache-Control", "no-store");
	http_reply(p->request, 201, "application/json", &b);
}

static void on_added(void *ctx, int rc, const struct err *e)
{
	struct pending *p = ctx;
	if (p->request && rc < 0)
		problem_err(p->request, e, PROBLEM_INTERNAL);
	else if (p->request)
		reply_made(p);
	pending_free(p);
}

static bool has_harness(struct daemon *d, const char *name, struct err *e)
{
	struct harness *h = NULL;
	bool there = harnesses_get(d->harnesses, name, &h, e) == 0;
	harness_unref(h);
	return there;
}

static bool has_policy(struct daemon *d, const char *name, struct err *e)
{
	const struct policy *x;
	return policies_find(d->policies, name, &x, e) >= 0;
}

/* What is named and not there may come later, or is a slip: the key is made, and that is said. */
static void warn(struct daemon *d, const struct json *body, const char *list,
        bool (*has)(struct daemon *d, const char *name, struct err *e), struct jw *to)
{
	for (const struct json *x = json_first(json_get(body, list)); x; x = json_next(x)) {
		struct err e;
		const char *name = json_text(x);
		if (name && !has(d, name, &e))
			jw_str(to, NULL, e.text);
	}
}

void api_key_add(struct daemon *d, struct http_request *r)
{
	struct err e;
	size_t n;
	const char *text = http_body(r, &n);
	auto_json struct json *body = body_parse(text, n, &e);
	struct pending *p = pending_new(d, r);
	if (!body || apikeys_add(d->keys, body, p->id, p->secret, on_added, p, &e) < 0) {
		problem_err(r, &e, PROBLEM_BAD_REQUEST);
		pending_free(p);
		return;
	}
	struct jw w = JW_INIT(&p->warnings);
	warn(d, body, "harnesses", has_harness, &w);
	warn(d, body, "policies", has_policy, &w);
	http_on_gone(r, on_client_gone, p);
}

static void on_revoked(void *ctx, int rc, const struct err *e)
{
	struct pending *p = ctx;
	if (p->request && rc < 0)
		problem_err(p->request, e, PROBLEM_INTERNAL);
	else if (p->request)
		http_reply(p->request, 204, NULL, NULL);
	pending_free(p);
}

void api_key_revoke(struct daemon *d, struct http_request *r)
{
	struct err e;
	struct pending *p = pending_new(d, r);
	if (apikeys_revoke(d->keys, http_param(r, 0), on_revoked, p, &e) < 0) {
		problem_err(r, &e, PROBLEM_INTERNAL);
		pending_free(p);
		return;
	}
	http_on_gone(r, on_client_gone, p);
}

void api_key_show(struct daemon *d, struct http_request *r)
{
	struct err e;
	auto_buf struct buf b = BUF_INIT(LIST_MAX);
	struct jw w = JW_INIT(&b);
	if (apikeys_show(d->keys, http_param(r, 0), &w, &e) < 0)
		problem_err(r, &e, PROBLEM_INTERNAL);
	else
		http_reply(r, 200, "application/json", &b);
}

void api_key_list(struct daemon *d, struct http_request *r)
{
	auto_buf struct buf b = BUF_INIT(LIST_MAX);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_open(&w, "keys", '[');
	apikeys_list(d->keys, &w);
	jw_close(&w, ']');
	jw_close(&w, '}');
	if (b.failed)
		problem_reply(r, PROBLEM_INTERNAL, NULL, "the list of keys is too long");
	else
		http_reply(r, 200, "application/json", &b);
}
