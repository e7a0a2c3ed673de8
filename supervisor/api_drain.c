#include "supervisor/api.h"

#include "base/json.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/drain.h"
#include "supervisor/http.h"
#include "supervisor/problem.h"

enum { DRAIN_JSON_MAX = 1024 };

void api_drain_show(struct daemon *d, struct http_request *r)
{
	auto_buf struct buf b = BUF_INIT(DRAIN_JSON_MAX);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_bool(&w, "draining", daemon_closing(d));
	jw_int(&w, "runsRunning", (int64_t)d->stats.runs_running);
	jw_int(&w, "runsQueued", (int64_t)d->stats.runs_queued);
	jw_int(&w, "jails", (int64_t)d->stats.jails);
	jw_close(&w, '}');
	buf_putc(&b, '\n');
	http_reply(r, 200, "application/json", &b);
}

struct asked {
	struct daemon *d;
	struct http_request *request; /* borrowed; NULL once the client left */
};

static void on_client_gone(void *ctx)
{
	((struct asked *)ctx)->request = NULL;
}

static void on_set(void *ctx, int rc, const struct err *e)
{
	auto_free struct asked *a = ctx;
	if (!a->request)
		return;
	if (rc < 0)
		problem_err(a->request, e, PROBLEM_INTERNAL);
	else
		api_drain_show(a->d, a->request);
}

static void set(struct daemon *d, struct http_request *r, bool on)
{
	struct asked *a = xnew(struct asked);
	*a = (struct asked){d, r};
	http_on_gone(r, on_client_gone, a);
	drain_set(d, on, on_set, a);
}

void api_drain_begin(struct daemon *d, struct http_request *r)
{
	set(d, r, true);
}

void api_drain_undo(struct daemon *d, struct http_request *r)
{
	set(d, r, false);
}
