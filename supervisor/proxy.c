/*
 * Theory of operation.
 *
 * The request's head is written when the connection is there; then each piece of
 * its body that the server (http.h) pushes is copied, written, and the next one is
 * asked for.  From the first moment the answer is read: one that comes before the
 * request is whole ends the sending.
 *
 * The answer goes through http1.h into `body`, which holds at most BODY_MAX; the
 * server pulls from it, and only where there is room again is more read.
 *
 * It ends when the client has all of it or has left: `over`.  The kernel may still
 * have a buffer then; the last completion frees.
 */
#include "supervisor/proxy.h"

#include "base/http1.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/http.h"
#include "supervisor/inbound.h"
#include "supervisor/loop.h"
#include "supervisor/problem.h"
#include "supervisor/relay.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
	PIECE = 16 << 10,    /* of a body, each way */
	BODY_MAX = 64 << 10, /* of the answer, waiting for the client */
	FRAME = 16,          /* around a chunk */
};

struct proxy {
	struct daemon *d;
	struct proxy_target target;
	struct http_request *request; /* borrowed; NULL: answered in full, or the client left */
	struct inbound *conn;
	int fd; /* borrowed: of conn; -1 until it is there */

	struct op write, read;
	bool write_polling, read_polling;
	struct buf out; /* the head, then a piece: whole while it is being written */
	size_t written;
	bool chunked, ended; /* the request's body; all of it was pushed */
	bool deaf;           /* the server takes no more of it */

	char *in; /* owned: PIECE */
	struct http1 answer;
	struct proxy_fields fields;
	struct buf body; /* of the answer, decoded */
	struct buf rest; /* after 101: of the other protocol */
	bool answering, read_ended, broken;
	bool over;

	struct relay *relay;
	struct http_upgraded *upgraded;
};

/* ---- the end ---- */

static void bury(struct proxy *p)
{
	if (!p->over || p->relay)
		return;
	if (p->write.inflight || p->read.inflight) {
		loop_cancel(p->d->loop, &p->write);
		loop_cancel(p->d->loop, &p->read);
		return;
	}
	inbound_close(p->conn);
	buf_done(&p->out);
	free(p->in);
	http1_done(&p->answer);
	proxy_fields_done(&p->fields);
	buf_done(&p->body);
	buf_done(&p->rest);
	free(p);
}

/* The server of the API is done with the request: the client has its answer, or left. */
static void on_over(void *ctx)
{
	struct proxy *p = ctx;
	p->over = true;
	p->request = NULL;
	bury(p);
}

/* Nothing was answered yet. */
static void refuse(struct proxy *p, const struct err *e)
{
	struct http_request *r = take(p->request);
	p->over = true;
	http_on_gone(r, NULL, NULL);
	problem_err(r, e, PROBLEM_UNREACHABLE);
}

static void fail(struct proxy *p, const char *why)
{
	struct err e;
	p->broken = p->deaf = true;
	if (p->answering) {
		http_wake(p->request); /* its client sees that something is missing */
		return;
	}
	err_set(&e, -ECONNREFUSED, "the server on port %u of the jail: %s", p->target.port, why);
	refuse(p, &e);
}

/* ---- the answer, to the client ---- */

static void read_next(struct proxy *p);

static ssize_t pull(void *ctx, char *to, size_t max)
{
	struct proxy *p = ctx;
	size_t n = p->body.len < max ? p->body.len : max;
	if (n > 0) {
		memcpy(to, p->body.p, n);
		buf_consume(&p->body, n);
		read_next(p);
		return (ssize_t)n;
	}
	if (p->answer.state == HTTP1_DONE)
		return HTTP_END;
	return p->broken ? HTTP_ABORT : HTTP_WAIT;
}

static void pass_field(void *ctx, const char *name, const char *value)
{
	struct proxy *p = ctx;
	http_add_header(p->request, name, value);
}

static void on_relayed(void *ctx)
{
	struct proxy *p = ctx;
	p->relay = NULL;
	http_upgraded_close(take(p->upgraded));
	p->over = true;
	bury(p);
}

static void start_relay(void *ctx, struct http_upgraded *u, int fd, const void *from, size_t n)
{
	struct proxy *p = ctx;
	p->request = NULL;
	p->upgraded = u;
	const struct relay_spec spec = {.loop = p->d->loop,
	        .client = fd,
	        .server = p->fd,
	        .from_client = from,
	        .nclient = n,
	        .from_server = p->rest.p,
	        .nserver = p->rest.len,
	        .over = on_relayed,
	        .ctx = p};
	p->relay = relay_new(&spec);
}

static void change_protocol(struct proxy *p)
{
	if (p->out.len > 0) {
		fail(p, "answers what it was not asked yet");
		return;
	}
	p->answering = true;
	proxy_answer_head(&p->target, &p->fields, pass_field, p);
	http_on_gone(p->request, on_over, p);
	http_upgrade(p->request, p->answer.upgrade, start_relay, p);
}

static void answer(struct proxy *p)
{
	const struct http1 *h = &p->answer;
	bool head = strcmp(http_method(p->request), "HEAD") == 0;
	p->answering = true;
	proxy_answer_head(&p->target, &p->fields, pass_field, p);
	if (h->state == HTTP1_DONE && !head && p->body.len == 0) {
		struct http_request *r = take(p->request);
		p->over = true;
		http_reply(r, h->status, NULL, NULL);
		return;
	}
	bool sized = h->sized && !h->chunked;
	const struct http_source source = {.pull = pull, .gone = on_over, .ctx = p};
	http_stream(p->request, h->status, NULL, sized ? (int64_t)(p->body.len + h->left) : -1,
	        &source);
}

static void look_at_head(struct proxy *p, bool upgrade)
{
	if (p->answering || !http1_has_head(&p->answer))
		return;
	if (p->answer.state != HTTP1_UPGRADED)
		answer(p);
	else if (upgrade && p->answer.upgrade[0])
		change_protocol(p);
	else
		fail(p, "changes to a protocol that nobody asked for");
}

/* ---- the answer, from the jail ---- */

static int on_field(void *ctx, const char *name, const char *value, struct err *e)
{
	struct proxy *p = ctx;
	if (!name) {
		proxy_fields_clear(&p->fields);
		return 0;
	}
	int r = proxy_fields_add(&p->fields, name, value);
	if (r < 0)
		return err_set(e, -EBADMSG, "the answer has %s",
		        r == -ENOBUFS ? "too many headers" : "a header that is none");
	return 0;
}

static bool asked_upgrade(const struct proxy *p)
{
	return http_header(p->request, "Upgrade") != NULL;
}

static void take_bytes(struct proxy *p, size_t n)
{
	struct err e;
	bool upgrade = !p->answering && asked_upgrade(p);
	ssize_t used = http1_feed(&p->answer, p->in, n, &p->body, &e);
	if (used < 0) {
		fail(p, e.text);
		return;
	}
	if (p->answer.state == HTTP1_UPGRADED)
		buf_put(&p->rest, p->in + used, n - (size_t)used);
	if (p->answering)
		http_wake(p->request);
	else
		look_at_head(p, upgrade);
}

static void at_end(struct proxy *p, int res)
{
	struct err e;
	p->read_ended = true;
	/* A body that ends with the connection has its end only if that was no reset. */
	if (res < 0 && p->answer.state == HTTP1_UNTIL_CLOSE)
		fail(p, strerror(-res));
	else if (http1_eof(&p->answer, &e) < 0)
		fail(p, http1_has_head(&p->answer) ? e.text : "closed without an answer");
	else if (p->answering)
		http_wake(p->request);
	else
		look_at_head(p, asked_upgrade(p));
}

static void on_read(struct op *op, int res, uint32_t flags)
{
	struct proxy *p = container_of(op, struct proxy, read);
	(void)flags;
	bool polled = p->read_polling;
	p->read_polling = false;
	if (p->over) {
		bury(p);
		return;
	}
	if (!polled && res == -EAGAIN) {
		p->read_polling = true;
		loop_poll(p->d->loop, &p->read, p->fd, POLLIN, false, on_read);
		return;
	}
	if (!polled && res > 0)
		take_bytes(p, (size_t)res);
	else if (!polled || res < 0)
		at_end(p, res);
	if (p->over)
		bury(p);
	else
		read_next(p);
}

/* Nothing is read while 101 is on its way: what follows is the relay's. */
static void read_next(struct proxy *p)
{
	if (p->read.inflight || p->read_ended || p->broken || p->answer.state >= HTTP1_DONE ||
	        p->body.len > BODY_MAX - PIECE)
		return;
	loop_read(p->d->loop, &p->read, p->fd, p->in, PIECE, on_read);
}

/* ---- the request, into the jail ---- */

static void write_next(struct proxy *p);

static void on_write(struct op *op, int res, uint32_t flags)
{
	struct proxy *p = container_of(op, struct proxy, write);
	(void)flags;
	bool polled = p->write_polling;
	p->write_polling = false;
	if (p->over) {
		bury(p);
		return;
	}
	if (!polled && res == -EAGAIN) {
		p->write_polling = true;
		loop_poll(p->d->loop, &p->write, p->fd, POLLOUT, false, on_write);
		return;
	}
	if (res < 0) /* its answer may be there all the same */
		p->deaf = true;
	else if (!polled)
		p->written += (size_t)res;
	write_next(p);
}

static void write_next(struct proxy *p)
{
	if (p->write.inflight || p->fd < 0)
		return;
	if (p->written < p->out.len && !p->deaf) {
		loop_write(p->d->loop, &p->write, p->fd, p->out.p + p->written,
		        p->out.len - p->written, on_write);
		return;
	}
	buf_clear(&p->out);
	p->written = 0;
	if (p->request && !p->ended)
		http_wake(p->request);
}

static void make_room(struct proxy *p, size_t n)
{
	if (buf_reserve(&p->out, n + FRAME) < 0)
		p->deaf = true; /* cannot be: its limit has room for a piece */
}

static size_t room(void *ctx)
{
	const struct proxy *p = ctx;
	return p->out.len == 0 || p->deaf ? PIECE : 0;
}

static void push(void *ctx, const char *from, size_t n)
{
	struct proxy *p = ctx;
	if (p->deaf)
		return;
	make_room(p, n + FRAME);
	if (p->chunked)
		buf_printf(&p->out, "%zx\r\n", n);
	buf_put(&p->out, from, n);
	if (p->chunked)
		buf_puts(&p->out, "\r\n");
	write_next(p);
}

/* Behind the piece that may be on its way: room was made for it, so that nothing moves. */
static void end(void *ctx)
{
	struct proxy *p = ctx;
	p->ended = true;
	if (!p->chunked || p->deaf)
		return;
	buf_puts(&p->out, "0\r\n\r\n");
	write_next(p);
}

/* ---- the beginning ---- */

static void on_opened(void *ctx, int fd, const struct err *e)
{
	struct proxy *p = ctx;
	if (e) {
		refuse(p, e);
		bury(p);
		return;
	}
	p->fd = fd;
	read_next(p);
	write_next(p);
}

static void on_jail_gone(void *ctx)
{
	struct proxy *p = ctx;
	if (p->relay)
		relay_expire(p->relay);
}

static int collect(void *ctx, const char *name, const char *value)
{
	return proxy_fields_add(ctx, name, value);
}

/* One protocol, and none that would be HTTP again. */
static const char *upgrade_of(const struct http_request *r)
{
	const char *to = http_header(r, "Upgrade");
	return to && !strpbrk(to, ", /") && strcasecmp(to, "h2c") != 0 ? to : NULL;
}

static int request_head(struct proxy *p, struct http_request *r, struct err *e)
{
	auto_buf struct buf path = BUF_INIT(PROXY_REQUEST_MAX);
	const char *query = http_raw_query(r);
	const char *at = http_path(r);
	for (int i = 0; i < 5 && p->target.form == PROXY_BY_PATH; i++)
		at += 1 + strcspn(at + 1, "/");
	buf_printf(&path, "%s%s%s", at, query ? "?" : "", query ? query : "");
	int rc = http_each_header(r, collect, &p->fields);
	p->chunked = http_header(r, "Transfer-Encoding") != NULL;
	const struct proxy_request q = {.target = &p->target,
	        .method = http_method(r),
	        .path = path.p,
	        .host = http_header(r, "Host"),
	        .upgrade = upgrade_of(r),
	        .chunked = p->chunked,
	        .fields = &p->fields};
	if (rc < 0 || path.failed || (q.upgrade && http_has_body(r)) ||
	        proxy_request_head(&q, &p->out) < 0)
		return err_set(e, -EINVAL, "the head of this request cannot be sent on");
	proxy_fields_clear(&p->fields);
	make_room(p, FRAME);
	return 0;
}

void proxy_begin(struct daemon *d, struct http_request *r, const struct proxy_target *t)
{
	struct err e;
	struct proxy *p = xnew(struct proxy);
	*p = (struct proxy){.d = d,
	        .target = *t,
	        .request = r,
	        .fd = -1,
	        .out = BUF_INIT(PROXY_REQUEST_MAX + PIECE),
	        .answer = HTTP1_INIT,
	        .fields = PROXY_FIELDS_INIT,
	        .body = BUF_INIT(BODY_MAX),
	        .rest = BUF_INIT(PIECE)};
	const struct inbound_calls calls = {
	        .opened = on_opened, .jail_gone = on_jail_gone, .ctx = p};
	p->answer.field = on_field;
	p->answer.ctx = p;
	p->answer.head_only = strcmp(http_method(r), "HEAD") == 0;
	p->in = xrealloc(NULL, 1, PIECE);
	if (request_head(p, r, &e) == 0)
		p->conn = inbound_open(d, t->session, t->port, &calls, &e);
	if (!p->conn) {
		refuse(p, &e);
		bury(p);
		return;
	}
	const struct http_sink sink = {.room = room, .push = push, .end = end, .ctx = p};
	http_take_body(r, &sink);
	http_on_gone(r, on_over, p);
}
