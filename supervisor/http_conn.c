/*
 * Theory of operation.
 *
 * A connection goes through its phases again and again (http_conn_run): a head,
 * a body, waiting for the handler, the answer.  While an answer is due nothing
 * is read, so what a client sends ahead stays in its socket.  All of it happens
 * in the hook phase of a turn; handlers, wake-ups and epoll only queue.
 *
 * The descriptor is watched once, for edges: what epoll told stays true until a
 * call says otherwise.  A client that closed its sending direction is read to
 * the end after its answer; one that is not there any more (EPOLLHUP) has left.
 *
 * The last answer of a connection whose client may still be sending is followed
 * by the end of our direction, and then what comes is dropped for a moment: to
 * close at once would break the pipe before the answer is read.
 */
#include "supervisor/http_private.h"

#include "base/fd.h"
#include "base/http_head.h"
#include "base/limits.h"
#include "base/mem.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum {
	/* A body over its limit is read and dropped up to this, so that its sender can read our
	 * 413 instead of a broken pipe; beyond it the answer comes at once. */
	DISCARD_MAX = 4 * LIMIT_HTTP_BODY,
	/* What one connection may move before the others have their turn; a request counts
	 * for what it costs beside its bytes. */
	TURN_BYTES = 256 << 10,
	REQUEST_COST = 4 << 10,
	/* Of what comes while a head is awaited, at least so much at a time: what is behind it, and
	 * stays until its answer, is no more than it has itself. */
	HEAD_STEP = 4 << 10,
	/* Heads that are larger are few at once; nobody is refused for what others do before. */
	HEAD_SMALL = 16 << 10,
	BIG_HEADS = 512, /* each 128 KiB at most, with its copy and what is behind it */
};

enum step {
	STEP_ON,   /* something was done: go on */
	STEP_REST, /* nothing can be done now */
	STEP_GONE, /* the connection is no more */
};

/* ---- life ---- */

struct http_conn *http_conn_new(struct http *h, int fd, const struct auth_peer *peer)
{
	struct http_conn *c = xnew(struct http_conn);
	struct epoll_event ev = {
	        .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
	        .data.ptr = c,
	};
	if (epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		fd_close(fd);
		free(c);
		return NULL;
	}
	c->http = h;
	c->in = (struct buf)BUF_INIT(HTTP_HEAD_MAX + HTTP_SCRATCH);
	c->out = (struct buf)BUF_INIT(HTTP_OUT_LOW + HTTP_SCRATCH);
	list_init(&c->work);
	conns_add(&h->conns, &c->conn, fd, peer);
	return c;
}

static void forget(struct http_conn *c)
{
	struct http *h = c->http;
	h->nwork[c->lane] -= !list_empty(&c->work);
	h->nbig -= c->big;
	list_remove(&c->work);
	conns_remove(&h->conns, &c->conn);
	buf_done(&c->in);
	buf_done(&c->out);
	free(c);
}

void http_conn_close(struct http_conn *c)
{
	struct http_request *r = take(c->request);
	if (r)
		http_request_gone(r);
	http_request_free(r);
	fd_close(c->conn.fd); /* and with it leaves the set */
	forget(c);
}

static enum step closed(struct http_conn *c)
{
	http_conn_close(c);
	return STEP_GONE;
}

bool http_conn_served(const struct http_conn *c)
{
	switch (c->phase) {
	case HTTP_PHASE_HEAD:
		return c->used && c->in.len == 0;
	case HTTP_PHASE_WAIT:
	case HTTP_PHASE_ANSWER: /* without a request: an upgraded one */
		return !c->request || c->request->source.gone || c->request->flows;
	case HTTP_PHASE_BODY:
		return c->request->flows;
	case HTTP_PHASE_END:
		break;
	}
	return c->phase == HTTP_PHASE_END;
}

void http_conn_told(struct http_conn *c, uint32_t events)
{
	c->hung_up |= (events & (EPOLLHUP | EPOLLERR)) != 0;
	c->half_closed |= c->hung_up || (events & EPOLLRDHUP);
	c->readable |= c->half_closed || (events & EPOLLIN);
	c->writable |= c->hung_up || (events & EPOLLOUT);
}

/* ---- in ---- */

static bool receive(struct http_conn *c)
{
	if (!c->readable || c->ended)
		return false;
	size_t most = HTTP_SCRATCH;
	if (c->phase == HTTP_PHASE_HEAD && c->in.len < HTTP_SCRATCH)
		most = c->in.len < HEAD_STEP ? HEAD_STEP : c->in.len;
	ssize_t n = recv(c->conn.fd, c->http->scratch, most, 0);
	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && errno == EAGAIN) {
		c->readable = false;
		return false;
	}
	if (n <= 0) {
		c->ended = true;
		return false;
	}
	/* Less than was asked for: it is empty, and what comes later is told anew. */
	c->readable = (size_t)n == most || c->half_closed;
	c->moved += (size_t)n;
	/* It fits: whoever calls has read what was there, but for a head. */
	return buf_put(&c->in, c->http->scratch, (size_t)n) == 0;
}

static enum step malformed(struct http_conn *c, const struct err *e)
{
	struct http *h = c->http;
	if (!c->request)
		c->request = http_request_new(c);
	c->last = c->linger = true;
	c->request->handled = true;
	c->phase = HTTP_PHASE_WAIT;
	if (c->request->flows) /* whoever takes its body hears of no end */
		http_request_gone(c->request);
	if (!c->request->answered)
		h->service.malformed(h->service.ctx, c->request, e);
	return STEP_ON;
}

/* Nothing more will come. */
static enum step cut_short(struct http_conn *c)
{
	struct err e;
	if (c->hung_up || c->conn.state == CONN_CUT || (!c->request && c->in.len == 0))
		return closed(c);
	err_set(&e, -EINVAL, "the request ends before its end");
	return malformed(c, &e);
}

/* The handler has it now, and sets the pace; where it answers at once the body is dropped as that
 * of a refused one.  What take_head is to go on with. */
static int64_t take_flow(struct http_conn *c)
{
	struct http *h = c->http;
	struct http_request *r = c->request;
	conns_enter(&h->conns, &c->conn, CONN_BUSY);
	h->service.request(h->service.ctx, r);
	r->flows = !r->answered;
	return -1;
}

/* Before the body: is it worth reading? */
static void take_head(struct http_conn *c)
{
	struct http *h = c->http;
	struct http_request *r = c->request;
	conns_enter(&h->conns, &c->conn, CONN_READING);
	c->last = !r->keep_alive;
	c->phase = HTTP_PHASE_BODY;
	int64_t limit = h->service.headers(h->service.ctx, r);
	if (limit == HTTP_BODY_FLOWS)
		limit = take_flow(c);
	r->handled = limit < 0;
	r->body_limit = limit < 0 ? 0 : (size_t)limit;
	r->body = (struct buf)BUF_INIT(r->body_limit);
	if (limit >= 0 && r->left > r->body_limit) {
		r->too_large = r->handled = true;
		h->service.too_large(h->service.ctx, r);
	}
	bool asks = r->expects && (r->chunked || r->left > 0);
	/* A client that asks first need not send what we would drop. */
	if (r->answered && (asks || r->left > DISCARD_MAX)) {
		c->last = c->linger = true;
		c->phase = HTTP_PHASE_WAIT;
	} else if (asks) {
		buf_puts(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
	}
}

static bool token_begins(const struct buf *in)
{
	return http_token((struct http_text){in->p, 1});
}

/* What is there of a head: its length, 0 while it may still become one, or -errno. */
static int head_length(const struct http_conn *c, struct err *e)
{
	const struct buf *in = &c->in;
	const char *lf = memchr(in->p, '\n', in->len);
	if (!token_begins(in) || (lf && (lf == in->p || lf[-1] != '\r')))
		return err_set(e, -EINVAL, "not an HTTP request");
	int n = http_head_length(in->p, in->len, c->searched);
	if (n < 0 && (!lf || lf - in->p >= HTTP_HEAD_MAX))
		return err_set(e, -ENAMETOOLONG, "the request line is longer than %d bytes",
		        HTTP_HEAD_MAX);
	return n < 0 ? err_set(e, n, "the head is longer than %d bytes", HTTP_HEAD_MAX) : n;
}

/* A head of n bytes, or of no end yet, is there: may it be held? */
static int admit_head(struct http_conn *c, int n, struct err *e)
{
	struct http *h = c->http;
	if (c->big || n < 0 || c->in.len <= HEAD_SMALL || (n > 0 && n <= HEAD_SMALL))
		return n;
	if (h->nbig >= BIG_HEADS)
		return err_set(e, -EBUSY, "heads of more than %d KiB: %d are held already",
		        HEAD_SMALL >> 10, BIG_HEADS);
	c->big = true;
	h->nbig++;
	return n;
}

static enum step read_head(struct http_conn *c)
{
	/* An empty line in front is what some clients send behind a body (RFC 9112, 2.2). */
	while (c->in.len >= 2 && memcmp(c->in.p, "\r\n", 2) == 0)
		buf_consume(&c->in, 2);
	if (c->in.len == 0 || (c->in.len == 1 && c->in.p[0] == '\r'))
		return STEP_REST;
	struct err e;
	int n = admit_head(c, head_length(c, &e), &e);
	c->searched = c->in.len;
	if (n == 0)
		return STEP_REST;
	c->searched = 0;
	c->moved += REQUEST_COST;
	c->request = http_request_new(c);
	if (n > 0)
		n = http_request_head(c->request, c->in.p, (size_t)n, &e) < 0 ? -1 : n;
	if (n < 0)
		return malformed(c, &e);
	buf_consume(&c->in, (size_t)n);
	take_head(c);
	return STEP_ON;
}

/* False: enough of it. */
static bool take_body(struct http_request *r, const char *p, size_t n)
{
	if (r->flows) {
		if (n > 0)
			r->sink.push(r->sink.ctx, p, n);
		return true;
	}
	bool wanted = !r->handled && !r->too_large;
	if (wanted && !http_room(r, r->body.len + n)) {
		http_crowded(r);
	} else if (wanted && buf_put(&r->body, p, n) == 0) {
		http_hold(r, r->body.len);
		return true;
	}
	r->too_large |= !r->handled;
	r->discarded += n;
	return r->discarded <= DISCARD_MAX;
}

static void dispatch(struct http_conn *c)
{
	struct http *h = c->http;
	struct http_request *r = c->request;
	conns_enter(&h->conns, &c->conn, CONN_BUSY);
	c->phase = HTTP_PHASE_WAIT;
	if (r->flows && !r->answered)
		r->sink.end(r->sink.ctx);
	if (r->handled)
		return;
	r->handled = true;
	if (r->too_large)
		h->service.too_large(h->service.ctx, r);
	else
		h->service.request(h->service.ctx, r);
}

/* How much the next piece may have. */
static size_t room(const struct http_request *r)
{
	size_t n = r->flows ? r->sink.room(r->sink.ctx) : HTTP_SCRATCH;
	return n < HTTP_SCRATCH ? n : HTTP_SCRATCH;
}

/* > 0: some of it was read; 0: more must come; -errno. */
static ssize_t read_piece(struct http_conn *c, size_t max, bool *ret_enough)
{
	struct http_request *r = c->request;
	struct buf *decoded = &c->http->decoded;
	if (r->chunked) {
		buf_clear(decoded);
		ssize_t n = chunked_decode(&r->chunks, c->in.p, c->in.len, decoded, max);
		*ret_enough = n >= 0 && !take_body(r, decoded->p, decoded->len);
		return n;
	}
	size_t n = c->in.len < r->left ? c->in.len : (size_t)r->left;
	n = n < max ? n : max;
	r->left -= n;
	*ret_enough = !take_body(r, c->in.p, n);
	return (ssize_t)n;
}

static enum step read_body(struct http_conn *c)
{
	struct http_request *r = c->request;
	while (r->chunked ? !r->chunks.done : r->left > 0) {
		bool enough;
		size_t max = room(r);
		if (r->flows && r->answered) { /* whose answer does not wait for the rest */
			c->last = c->linger = true;
			break;
		}
		if (max == 0 && c->hung_up)
			return closed(c);
		if (c->in.len == 0 || max == 0)
			return STEP_REST;
		ssize_t n = read_piece(c, max, &enough);
		if (n < 0) {
			struct err e;
			err_set(&e, -EINVAL, "the body's chunks are malformed");
			return malformed(c, &e);
		}
		buf_consume(&c->in, (size_t)n);
		if (enough) {
			c->last = c->linger = true;
			break;
		}
	}
	dispatch(c);
	return STEP_ON;
}

/* ---- out ---- */

/* A full socket: the client's time to take something begins. */
static void blocked(struct http_conn *c)
{
	c->writable = false;
	conns_enter(&c->http->conns, &c->conn, CONN_WRITING);
}

/* Sends `out`, and then p[n]: how much of that, or -errno. */
static ssize_t send_both(struct http_conn *c, const char *p, size_t n)
{
	size_t head = c->out.len - c->sent;
	struct iovec v[2] = {{c->out.p + c->sent, head}, {(void *)(uintptr_t)p, n}};
	struct msghdr m = {.msg_iov = head ? v : v + 1, .msg_iovlen = (head > 0) + (n > 0)};
	ssize_t k = sendmsg(c->conn.fd, &m, MSG_NOSIGNAL);
	if (k < 0 && errno != EAGAIN && errno != EINTR)
		return -errno;
	size_t sent = k < 0 ? 0 : (size_t)k;
	c->moved += sent;
	if (sent < head + n)
		blocked(c);
	if (sent < head) {
		c->sent += sent;
		return 0;
	}
	buf_done(&c->out);
	c->sent = 0;
	return (ssize_t)(sent - head);
}

static enum step end(struct http_conn *c)
{
	if (c->ended || c->hung_up || !(c->linger || c->in.len || c->readable))
		return closed(c);
	shutdown(c->conn.fd, SHUT_WR);
	c->phase = HTTP_PHASE_END;
	conns_enter(&c->http->conns, &c->conn, CONN_ENDING);
	return STEP_ON;
}

static enum step hand_over(struct http_conn *c)
{
	struct http *h = c->http;
	struct http_request *r = take(c->request);
	auto_buf struct buf early = c->in;
	c->in = (struct buf)BUF_INIT(0);
	epoll_ctl(h->epoll_fd, EPOLL_CTL_DEL, c->conn.fd, NULL);
	struct http_upgraded *u = xnew(struct http_upgraded);
	u->conn = c;
	list_append(&h->upgraded, &u->link);
	http_hold(r, 0);
	r->start(r->start_ctx, u, c->conn.fd, early.p, early.len); /* may close the connection */
	http_request_free(r);
	return STEP_GONE;
}

static enum step answered(struct http_conn *c)
{
	if (c->request->start)
		return hand_over(c);
	struct http_request *r = take(c->request);
	http_request_gone(r);
	http_request_free(r);
	c->used = true;
	c->http->nbig -= c->big;
	c->big = false;
	if (c->last)
		return end(c);
	c->phase = HTTP_PHASE_HEAD;
	conns_enter(&c->http->conns, &c->conn, CONN_WAITING);
	if (c->in.len == 0) /* an idle connection holds no buffer */
		buf_done(&c->in);
	return STEP_ON;
}

static enum step send_answer(struct http_conn *c)
{
	struct http_request *r = c->request;
	if (!c->writable)
		return STEP_REST;
	const char *p = NULL;
	ssize_t n = http_answer_more(c, &p);
	if (n < 0)
		return closed(c);
	if (n == 0 && c->out.len == c->sent)
		return http_answer_all_sent(c) ? answered(c) : c->hung_up ? closed(c) : STEP_REST;
	ssize_t sent = send_both(c, p, (size_t)n);
	if (sent < 0)
		return closed(c);
	if (!r->streams)
		r->reply_sent += (size_t)sent;
	else if (sent < n)
		buf_put(&c->out, p + sent, (size_t)(n - sent));
	if (c->writable && c->conn.state == CONN_WRITING)
		conns_enter(&c->http->conns, &c->conn, CONN_BUSY);
	return http_answer_all_sent(c) ? answered(c) : STEP_ON;
}

/* ---- all of it ---- */

static enum step wait_for_answer(struct http_conn *c)
{
	if (!c->request->answered)
		return c->hung_up ? closed(c) : STEP_REST;
	http_answer_begin(c);
	conns_enter(&c->http->conns, &c->conn, CONN_BUSY);
	c->phase = HTTP_PHASE_ANSWER;
	return STEP_ON;
}

/* Before the body: that it is wanted. */
static enum step send_early(struct http_conn *c)
{
	if (c->out.len == c->sent || !c->writable)
		return STEP_REST;
	return send_both(c, NULL, 0) < 0 ? closed(c) : STEP_REST;
}

static enum step read_more(struct http_conn *c)
{
	if (receive(c))
		return STEP_ON;
	return c->ended ? cut_short(c) : STEP_REST;
}

static enum step drop(struct http_conn *c)
{
	buf_clear(&c->in);
	if (receive(c))
		return STEP_ON;
	return c->ended ? closed(c) : STEP_REST;
}

static enum step step(struct http_conn *c)
{
	enum step s = STEP_REST;
	switch (c->phase) {
	case HTTP_PHASE_HEAD:
		s = read_head(c);
		return s == STEP_REST ? read_more(c) : s;
	case HTTP_PHASE_BODY:
		s = send_early(c);
		if (s == STEP_REST)
			s = read_body(c);
		/* What a sink does not take yet stays where it is, and in the socket. */
		return s == STEP_REST && c->in.len == 0 ? read_more(c) : s;
	case HTTP_PHASE_WAIT:
		return wait_for_answer(c);
	case HTTP_PHASE_ANSWER:
		return send_answer(c);
	case HTTP_PHASE_END:
		return drop(c);
	}
	return s;
}

bool http_conn_run(struct http_conn *c)
{
	enum step s = STEP_ON;
	c->moved = 0;
	while (s == STEP_ON && c->moved < TURN_BYTES)
		s = step(c);
	return s == STEP_ON;
}

void http_upgraded_close(struct http_upgraded *u)
{
	list_remove(&u->link);
	http_conn_close(u->conn);
	free(u);
}
