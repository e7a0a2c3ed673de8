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

#include <string.h>

struct watching {
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

static void refill(struct watching *x)
{
	uint64_t lost;
	buf_clear(&x->out);
	x->sent = 0;
	const char *line = egress_feed_line(x->feed, &x->follower, &lost);
	if (lost)
		put_lost(x, lost);
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
	size_t n = x->out.len - x->sent < max ? x->out.len - x->sent : max;
	memcpy(p, x->out.p + x->sent, n);
	x->sent += n;
	return (ssize_t)n;
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
