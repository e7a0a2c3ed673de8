#include "supervisor/api.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/body.h"
#include "supervisor/daemon.h"
#include "supervisor/harnesses.h"
#include "supervisor/http.h"
#include "supervisor/loop.h"
#include "supervisor/prewarm.h"
#include "supervisor/problem.h"
#include "supervisor/scope.h"
#include "supervisor/visit.h"

enum { ANSWER_MAX = 4096 };

struct waiter {
	struct daemon *d;             /* borrowed */
	struct http_request *request; /* borrowed; NULL: answered, or the client left */
	bool stays;                   /* it is answered when all is done */
	int64_t until_ms;
	struct op look;
	char session[ID_MAX], harness[NAME_MAX_LEN];
	struct prewarm_said said;
};

static void on_client_gone(void *ctx)
{
	((struct waiter *)ctx)->request = NULL;
}

static void answer(struct http_request *r, const struct waiter *x, bool ready)
{
	auto_buf struct buf b = BUF_INIT(ANSWER_MAX);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_str(&w, "sessionId", x->session);
	jw_str(&w, "harness", x->harness);
	jw_str(&w, "state", ready ? "ready" : "preparing");
	jw_bool(&w, "agent", x->said.agent);
	jw_str(&w, "why", x->said.why);
	jw_close(&w, '}');
	http_reply(r, ready ? 200 : 202, "application/json", &b);
}

static void on_done(void *ctx, int rc, const struct err *e)
{
	auto_free struct waiter *x = ctx;
	if (rc < 0)
		log_warn("s=%s: not prepared for harness %s: %s", x->session, x->harness, e->text);
	if (x->request && rc < 0)
		problem_err(x->request, e, PROBLEM_HARNESS_INVALID);
	else if (x->request)
		answer(x->request, x, true);
}

static void look_again(struct op *op, int res, uint32_t flags);

static bool must_wait(const struct waiter *x)
{
	return x->request && !daemon_closing(x->d) && !x->d->early_stopped &&
	       clock_mono_ms() < x->until_ms && visit_passes(x->d, x->session);
}

static void wait_a_little(struct waiter *x)
{
	loop_timeout(x->d->loop, &x->look, VISIT_LOOK_MS, look_again);
}

static void begin(struct waiter *x)
{
	struct err e;
	if (!x->request) {
		free(x);
		return;
	}
	int rc = prewarm_begin(x->d, x->session, x->harness, on_done, x, &x->said, &e);
	if (rc == -EBUSY && must_wait(x)) {
		wait_a_little(x);
		return;
	}
	if (rc == 0 && x->stays)
		return;
	struct http_request *r = take(x->request);
	http_on_gone(r, NULL, NULL);
	if (rc < 0)
		problem_err(r, &e, PROBLEM_HARNESS_INVALID);
	else
		answer(r, x, rc == 1);
	if (rc != 0)
		free(x);
}

/* All that a harness needs is not looked at again for each look. */
static void look_again(struct op *op, int res, uint32_t flags)
{
	struct waiter *x = container_of(op, struct waiter, look);
	(void)res;
	(void)flags;
	if (must_wait(x))
		wait_a_little(x);
	else
		begin(x);
}

static struct waiter *waiter_new(
        struct daemon *d, struct http_request *r, const char *harness, bool stays)
{
	struct waiter *x = xnew(struct waiter);
	x->d = d;
	x->request = r;
	x->stays = stays;
	x->until_ms = clock_mono_ms() + VISIT_PASSES_MS;
	(void)str_copy(
	        x->session, sizeof(x->session), http_param(r, 0)); /* a longer one is not there */
	(void)str_copy(x->harness, sizeof(x->harness), harness);   /* likewise */
	http_on_gone(r, on_client_gone, x);
	return x;
}

void api_session_prewarm(struct daemon *d, struct http_request *r)
{
	static const struct body_key keys[] = {{"harness", BODY_STRING, true}};
	struct err e;
	size_t n;
	bool wait;
	const char *text = http_body(r, &n);
	auto_json struct json *body = body_parse(text, n, &e);
	if (!body || body_check(body, "", keys, ARRAY_LEN(keys), &e) < 0 ||
	        http_query_flag(r, "wait", &wait, &e) < 0) {
		problem_err(r, &e, PROBLEM_BAD_REQUEST);
		return;
	}
	const char *harness = json_str(body, "harness", "");
	harnesses_catch_up(d->harnesses);
	if (scope_may_start(d, r, harness, &e) < 0)
		problem_err(r, &e, PROBLEM_HARNESS_INVALID);
	else if (scope_admit(d, r) == 0)
		begin(waiter_new(d, r, harness, wait));
}
