#include "egress/http_conn.h"

#include "base/mem.h"
#include "egress/http.h"
#include "egress/http_answer.h"
#include "egress/tls.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* `in` holds at most one head, or body bytes on their way, and a record of TLS, which is taken
 * whole; `out` a response head (256 KiB) on top of what waits. */
enum { IN_HIGH = HTTP_HEAD_MAX + 1024, IN_MAX = IN_HIGH + TLS_RECORD, OUT_MAX = 1 << 20 };

/* ---- the socket ---- */

static ssize_t get(struct http_conn *c, void *p, size_t n)
{
	return c->tls ? tls_recv(c->tls, p, n) : recv(c->client.fd, p, n, 0);
}

static ssize_t put(struct http_conn *c, const void *p, size_t n)
{
	return c->tls ? tls_send(c->tls, p, n) : send(c->client.fd, p, n, MSG_NOSIGNAL);
}

/* ---- out ---- */

void http_conn_interest(struct http_conn *c)
{
	uint32_t want = 0;
	if (c->client.ended)
		return;
	if (c->state == HTTP_EXCHANGE && c->x.body_done)
		want = EPOLLRDHUP;
	else if (c->state == HTTP_EXCHANGE ? c->in.len < IN_HIGH : c->state != HTTP_FLUSH)
		want = EPOLLIN;
	if (c->out.len)
		want |= EPOLLOUT;
	reactor_set(c->client.reactor, &c->client.watch, want);
}

static void linger(struct http_conn *c)
{
	c->state = HTTP_LINGER;
	if (c->tls)
		tls_end(c->tls);
	(void)shutdown(c->client.fd, SHUT_WR);
	client_deadline(&c->client, HTTP_LINGER_MS);
	buf_done(&c->in);
}

void http_conn_flush(struct http_conn *c)
{
	while (c->out.len && !c->client.ended) {
		ssize_t n = put(c, c->out.p, c->out.len);
		if (n > 0) {
			buf_consume(&c->out, (size_t)n);
			if (c->state == HTTP_EXCHANGE)
				client_deadline(&c->client, EXCHANGE_IDLE_MS);
		} else if (errno == EAGAIN) {
			break;
		} else if (errno != EINTR) {
			client_end(&c->client, true);
		}
	}
	if (c->client.ended)
		return;
	if (c->state == HTTP_FLUSH && c->out.len == 0)
		linger(c);
	http_conn_interest(c);
}

void http_conn_refuse(struct http_conn *c, int status, struct report_of what, const char *reason)
{
	what.protocol = EGRESS_PROTOCOL_HTTP;
	what.policy = &c->client.jail->names.book->policy;
	report_denied(&c->client.jail->report, &what, reason);
	http_answer(&c->out, status, reason);
	c->state = HTTP_FLUSH;
	client_deadline(&c->client, HTTP_HEAD_MS);
	http_conn_flush(c);
}

/* ---- in ---- */

static int status_for(int code)
{
	switch (-code) {
	case EACCES:
		return 403;
	case EPROTONOSUPPORT:
		return 505;
	case EOPNOTSUPP:
		return 501;
	case E2BIG:
		return 431;
	default:
		return 400;
	}
}

/* Before it is known who is asked for: what was dialled, and nobody's rule. */
static struct report_of dialled(const struct http_conn *c)
{
	return (struct report_of){.host = c->address, .port = c->place.port, .rule = -1};
}

static void refuse_head(struct http_conn *c, const struct err *e)
{
	char reason[128];
	snprintf(reason, sizeof(reason), "http: %.100s", e->text);
	http_conn_refuse(c, status_for(e->code), dialled(c), reason);
}

/* Whole heads in `in` become exchanges, one at a time. */
static void advance(struct http_conn *c)
{
	struct err err;
	int n = http_head_length(c->in.p, c->in.len, c->searched);
	if (n == 0 && c->in.len && !isalpha((unsigned char)c->in.p[0]))
		n = err_set(&err, -EINVAL, "not an HTTP request");
	else if (n < 0)
		err_set(&err, n, "the request head is longer than %d bytes", HTTP_HEAD_MAX);
	c->searched = c->in.len;
	if (n == 0)
		return;
	struct http_head h;
	int r = n < 0 ? n : http_request_parse(c->in.p, (size_t)n, &h, &err);
	if (r < 0) {
		refuse_head(c, &err);
		return;
	}
	c->searched = 0;
	c->state = HTTP_EXCHANGE;
	client_deadline(&c->client, EXCHANGE_IDLE_MS);
	exchange_begin(c, &h);
	if (c->client.ended || c->state != HTTP_EXCHANGE)
		return;
	buf_consume(&c->in, (size_t)n);
	exchange_feed(c);
	http_conn_flush(c);
}

void http_conn_next(struct http_conn *c, bool keep)
{
	c->used = true;
	if (!keep || (c->client.jail->services->draining && c->in.len == 0)) {
		c->state = HTTP_FLUSH;
		client_deadline(&c->client, EXCHANGE_IDLE_MS);
		http_conn_flush(c);
		return;
	}
	c->state = HTTP_HEAD;
	client_deadline(&c->client, c->in.len ? HTTP_HEAD_MS : HTTP_IDLE_MS);
	http_conn_flush(c);
	if (c->client.ended)
		return;
	/* An idle connection holds no buffers. */
	if (c->out.len == 0)
		buf_done(&c->out);
	if (c->in.len == 0)
		buf_done(&c->in);
	else
		advance(c);
}

static void discard(struct http_conn *c)
{
	char bytes[16 << 10];
	ssize_t n = get(c, bytes, sizeof(bytes));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	c->discarded += n > 0 ? (size_t)n : 0;
	if (n <= 0 || c->discarded > HTTP_LINGER_BYTES)
		client_end(&c->client, n != 0);
}

static void read_some(struct http_conn *c)
{
	size_t most = c->tls ? IN_MAX : IN_HIGH;
	if (c->in.len >= IN_HIGH || buf_reserve(&c->in, most - c->in.len) < 0)
		return;
	ssize_t n = get(c, c->in.p + c->in.len, most - c->in.len);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) { /* gone: between requests, or in the middle of one */
		client_end(&c->client, n < 0);
		return;
	}
	if (c->state == HTTP_HEAD && c->in.len == 0)
		client_deadline(&c->client, HTTP_HEAD_MS);
	c->in.len += (size_t)n;
	if (c->state == HTTP_HEAD) {
		advance(c);
	} else {
		client_deadline(&c->client, EXCHANGE_IDLE_MS);
		exchange_feed(c);
		http_conn_interest(c);
	}
}

static void on_ready(struct client *client, uint32_t events)
{
	struct http_conn *c = container_of(client, struct http_conn, client);
	bool gone = events & (EPOLLERR | EPOLLHUP) ||
	            (events & EPOLLRDHUP && c->state == HTTP_EXCHANGE && c->x.body_done);
	if (gone) {
		client_end(client, false);
		return;
	}
	if (events & EPOLLOUT) {
		http_conn_flush(c);
		if (!client->ended && c->state == HTTP_EXCHANGE)
			exchange_drained(c);
	}
	if (client->ended || !(events & EPOLLIN))
		return;
	if (c->state == HTTP_LINGER)
		discard(c);
	else if (c->state != HTTP_FLUSH)
		read_some(c);
}

static void on_late(struct client *client)
{
	struct http_conn *c = container_of(client, struct http_conn, client);
	if (c->state == HTTP_EXCHANGE)
		exchange_late(c);
	else if (c->state == HTTP_HEAD && c->in.len)
		http_conn_refuse(
		        c, 408, dialled(c), "http: the request head did not arrive in time");
	else
		client_end(client, c->state != HTTP_LINGER && c->state != HTTP_HEAD);
}

static bool has_input(const struct http_conn *c)
{
	char byte;
	return c->in.len > 0 || recv(c->client.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* A connection between two requests may be closed; one that has not been asked yet may not. */
static void on_leave(struct client *client, const char *cut)
{
	struct http_conn *c = container_of(client, struct http_conn, client);
	if (cut && c->state == HTTP_EXCHANGE) {
		exchange_cut(c, cut);
	} else if (!cut && c->state == HTTP_HEAD && c->used && !has_input(c)) {
		linger(c);
		http_conn_interest(c);
	}
}

static void on_free(struct client *client)
{
	struct http_conn *c = container_of(client, struct http_conn, client);
	exchange_done(c);
	tls_free(c->tls);
	buf_done(&c->in);
	buf_done(&c->out);
	free(c);
}

static void on_follow(struct client *client)
{
	exchange_follow(container_of(client, struct http_conn, client));
}

static const struct client_kind kind = {.ready = on_ready,
        .late = on_late,
        .leave = on_leave,
        .free = on_free,
        .follow = on_follow};

static struct http_conn *begin(struct jail *j, int fd, const struct place *p, struct tls *tls)
{
	struct http_conn *c = xnew(struct http_conn);
	struct sockaddr_storage a;
	c->tls = tls;
	c->in = (struct buf)BUF_INIT(IN_MAX);
	c->out = (struct buf)BUF_INIT(OUT_MAX);
	exchange_init(&c->x);
	c->place = *p;
	(void)address_of(p->mapped, 0, &a);
	address_text((const struct sockaddr *)&a, c->address);
	client_begin(&c->client, &kind, j, fd, EPOLLIN, HTTP_HEAD_MS);
	return c;
}

void http_conn_accept(struct jail *j, int fd, const struct place *p, const char *bytes, size_t n)
{
	struct http_conn *c = begin(j, fd, p, NULL);
	if (n && !c->client.ended && buf_put(&c->in, bytes, n) == 0)
		advance(c);
}

void http_conn_accept_tls(struct jail *j, int fd, const struct place *p, struct tls *tls)
{
	(void)begin(j, fd, p, tls);
}
