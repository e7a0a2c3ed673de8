/* Whom root wants told of runs: what becomes of it, and a test. */
#include "supervisor/api.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/http.h"
#include "supervisor/problem.h"
#include "supervisor/webhooks.h"

enum { WEBHOOKS_JSON_MAX = 256 << 10 };

void api_webhook_list(struct daemon *d, struct http_request *r)
{
	auto_buf struct buf b = BUF_INIT(WEBHOOKS_JSON_MAX);
	buf_puts(&b, "{\"webhooks\":[");
	webhooks_list(d->webhooks, &b);
	buf_puts(&b, "]}");
	http_reply(r, 200, "application/json", &b);
}

struct test {
	struct http_request *request; /* borrowed; NULL once the client left */
};

static void on_client_gone(void *ctx)
{
	((struct test *)ctx)->request = NULL;
}

static void on_answer(void *ctx, const struct jail_hooked *m)
{
	auto_free struct test *t = ctx;
	if (!t->request)
		return;
	auto_buf struct buf b = BUF_INIT(4096);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_bool(&w, "delivered", m->status >= 200 && m->status < 300);
	if (m->status && m->reason[0]) /* a command's */
		jw_str(&w, "said", m->reason);
	else if (m->status)
		jw_int(&w, "status", m->status);
	else
		jw_str(&w, "error", m->reason);
	jw_int(&w, "tookMs", m->took_ms);
	jw_close(&w, '}');
	http_reply(t->request, 200, "application/json", &b);
}

void api_webhook_test(struct daemon *d, struct http_request *r)
{
	struct err e;
	struct test *t = xnew(struct test);
	t->request = r;
	if (webhooks_try(d->webhooks, http_param(r, 0), on_answer, t, &e) < 0) {
		free(t);
		problem_err(r, &e, PROBLEM_INTERNAL);
		return;
	}
	http_on_gone(r, on_client_gone, t);
}
