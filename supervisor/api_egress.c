/* GET /v1/egress: the latest of what jails sent out or were refused, and what comes. */
#include "supervisor/api.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/egress_feed.h"
#include "supervisor/egress_news.h"
#include "supervisor/http.h"
#include "supervisor/problem.h"
#include "supervisor/scope.h"

#include <string.h>

struct watching {
	struct daemon *d;
	struct http_request *request; /* borrowed: until gone */
	struct egress_feed *feed;     /* borrowed */
	struct egress_follower follower;
	struct buf out;
	size_t sent;
	bool follow;
};

static void put_lost(struct watching *x, uint64_t lost)
{
	struct jw w = JW_INIT(&x->out);
	jw_open(&w, NULL, '{');
	jw_str(&w, "type", "egress.lost");
	jw_int(&w, "count", (int64_t)lost);
	jw_close(&w, '}');
	buf_putc(&x->out, '\n');
}

static bool seen(struct watching *x, const char *line)
{
	struct err e;
	if (!http_actor(x->request)[0])
		return true;
	auto_json struct json *j = json_parse(line, strlen(line), &e);
	return j && scope_sees_session(x->d, x->request, json_str(j, "session", ""));
}

static void refill(struct watching *x)
{
	uint64_t lost;
	const char *line;
	buf_clear(&x->out);
	x->sent = 0;
	do {
		line = egress_feed_line(x->feed, &x->follower, &lost);
		/* How much others send is not a tenant's business. */
		if (lost && !http_actor(x->request)[0])
			put_lost(x, lost);
	} while (line && !seen(x, line));
	if (line)
		buf_printf(&x->out, "%s\n", line);
}

static ssize_t pull(void *ctx, char *p, size_t max)
{
	struct watching *x = ctx;
	if (x->sent == x->out.len)
		refill(x);
	if (x->out.len == 0)
		return x->follow ? HTTP_WAIT : HTTP_END;
	return http_give(&x->out, &x->sent, p, max);
}

static void on_gone(void *ctx)
{
	struct watching *x = ctx;
	egress_feed_leave(&x->follower);
	buf_done(&x->out);
	free(x);
}

static void on_more(struct egress_follower *f)
{
	http_wake(container_of(f, struct watching, follower)->request);
}

void api_egress(struct daemon *d, struct http_request *r)
{
	struct err e;
	bool follow;
	if (http_query_flag(r, "follow", &follow, &e) < 0) {
		problem_err(r, &e, PROBLEM_BAD_REQUEST);
		return;
	}
	struct watching *x = xnew(struct watching);
	x->d = d;
	x->request = r;
	x->feed = d->egress;
	x->follow = follow;
	x->out = (struct buf)BUF_INIT(EGRESS_NEWS_MAX);
	x->follower.wake = on_more;
	egress_feed_follow(x->feed, &x->follower);
	struct http_source source = {.pull = pull, .gone = on_gone, .ctx = x};
	http_add_header(r, "Cache-Control", "no-store");
	http_stream(r, 200, "application/x-ndjson", -1, &source);
}
