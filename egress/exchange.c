#include "egress/exchange.h"

#include "base/mem.h"
#include "egress/http_conn.h"
#include "egress/secrets.h"
#include "egress/upstream.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/*
 * Order of one exchange:
 *
 *	judge		Host, port and dialled address name the same entry of the policy
 *	prepare		libcurl handle, headers passed on, credential put in place
 *	lookup		addresses of the upstream, judged
 *	start		from here libcurl calls back: pull (request body), head, body, end
 *
 * Everything that needs the head's bytes happens before they leave `in`.
 */

enum { RESPONSE_FIELDS = 200 };

void exchange_init(struct exchange *x)
{
	memset(x, 0, sizeof(*x));
	x->body = (struct buf)BUF_INIT(EXCHANGE_REPLAY + EXCHANGE_BODY_HIGH);
	x->replayable = true;
}

static struct report *report_of(struct http_conn *c)
{
	return &c->client.jail->report;
}

/* ---- judging ---- */

/* Something between the jail and us; and something outside. */
static void refuse(struct http_conn *c, int status, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

static void refuse(struct http_conn *c, int status, const char *fmt, ...)
{
	char reason[128];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	http_conn_refuse(c, status, c->x.name, 80, reason);
}

static void refuse_upstream(struct http_conn *c, int status, const struct err *e)
{
	char reason[128];
	snprintf(reason, sizeof(reason), "http: upstream %.110s", e->text);
	http_conn_refuse(c, status, c->x.origin.host, c->x.origin.port, reason);
}

/* The entry of the policy, or NULL when it was refused. */
static const struct policy_inject *judge(struct http_conn *c, const struct http_head *h)
{
	const struct names *t = &c->client.jail->names;
	char *host = c->x.name, reason[128];
	int len = (int)(h->host.n < POLICY_HOST_MAX ? h->host.n : POLICY_HOST_MAX - 1);
	snprintf(host, POLICY_HOST_MAX, "%.*s", len, h->host.p);
	int i = names_find(t, h->host.p, h->host.n);
	if (i < 0) {
		names_refusal(t, "http", host, reason, sizeof(reason));
		http_conn_refuse(c, 403, host, (unsigned)h->port, reason);
	} else if (h->port != 80) {
		refuse(c, 403, "http: %.60s is served on port 80 only", host);
	} else if (!c->has_v4 || c->v4 != names_address(i)) {
		refuse(c, 403, "http: Host %.50s does not belong to the address %.40s", host,
		        c->address);
	} else if (h->upgrade) {
		refuse(c, 403, "http: Upgrade is refused");
	} else {
		return &t->inject[i];
	}
	return NULL;
}

/* ---- the request ---- */

static bool credential(struct http_text name, const struct policy_inject *in)
{
	return in->secret[0] && (http_is(name, in->header) || http_is(name, "authorization") ||
	                                http_is(name, "x-api-key"));
}

/* What the jail's program says is passed on, but for what concerns its connection to us, and for
 * credentials: those are placeholders, and the real one follows. */
static int pass_headers(
        struct transfer *t, const struct http_head *h, const struct policy_inject *in)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < h->nfields; i++) {
		const struct http_field *f = &h->fields[i];
		bool ours = http_is(f->name, "host") || http_is(f->name, "content-length") ||
		            http_is(f->name, "expect");
		if (!ours && !credential(f->name, in) &&
		        !http_hop_by_hop(f->name, h->fields, h->nfields))
			r = transfer_header(t, f->name, "", f->value);
	}
	return r;
}

static int64_t body_bytes(const struct http_head *h)
{
	static const char *const with_body[] = {"POST", "PUT", "PATCH"};
	if (h->chunked)
		return TRANSFER_CHUNKED;
	if (h->content_length >= 0)
		return h->content_length;
	for (size_t i = 0; i < ARRAY_LEN(with_body); i++)
		if (http_is(h->method, with_body[i]))
			return 0; /* said to the upstream, which may insist on a length */
	return TRANSFER_NO_BODY;
}

static void take_head(struct exchange *x, const struct http_head *h, const struct policy_inject *in)
{
	buf_done(&x->body);
	exchange_init(x);
	snprintf(x->method, sizeof(x->method), "%.*s", (int)h->method.n, h->method.p);
	(void)str_copy(x->name, sizeof(x->name), in->host);
	x->minor = h->minor;
	x->keep_alive = h->keep_alive;
	x->replayable = h->content_length <= EXCHANGE_REPLAY;
	x->is_chunked = h->chunked;
	x->left = h->content_length > 0 ? h->content_length : 0;
	x->body_done = !h->chunked && x->left == 0;
}

static void start(struct http_conn *c)
{
	struct err err;
	if (transfer_start(c->x.transfer, c->x.lookup.addresses, &err) < 0)
		refuse_upstream(c, 502, &err);
}

static void on_addresses(struct lookup *l, const struct err *e)
{
	struct http_conn *c = container_of(l, struct http_conn, x.lookup);
	if (c->client.ended || c->state != HTTP_EXCHANGE)
		return;
	if (e)
		refuse_upstream(c, 502, e);
	else
		start(c);
}

static const struct transfer_ops ops;

static int prepare(struct http_conn *c, const struct http_head *h, const struct policy_inject *in,
        struct err *e)
{
	struct exchange *x = &c->x;
	const struct services *s = c->client.jail->services;
	size_t n = 0;
	const char *secret = in->secret[0] ? secrets_find(s->secrets, in->secret, &n) : NULL;
	if (in->secret[0] && !secret)
		return err_set(e, -ENOKEY, "secret %s is not configured", in->secret);
	int r = origin_parse(in->upstream, &x->origin, e);
	if (r < 0)
		return r;
	struct transfer_spec spec = {.origin = &x->origin,
	        .any_address = in->loopback != 0,
	        .method = h->method,
	        .target = h->target,
	        .fresh = !x->replayable,
	        .body_bytes = body_bytes(h),
	        .ops = &ops,
	        .ctx = c};
	x->transfer = transfer_new(s->upstream, &spec, e);
	if (!x->transfer)
		return e->code;
	r = pass_headers(x->transfer, h, in);
	if (r == 0 && secret)
		r = transfer_header(x->transfer, (struct http_text){in->header, strlen(in->header)},
		        in->prefix, (struct http_text){secret, n});
	return r < 0 ? err_set(e, r, "the request's headers do not fit") : 0;
}

void exchange_begin(struct http_conn *c, const struct http_head *h)
{
	struct err err;
	struct exchange *x = &c->x;
	const struct policy_inject *in = judge(c, h);
	if (!in)
		return;
	take_head(x, h, in);
	int r = prepare(c, h, in, &err);
	if (r < 0) {
		refuse(c, r == -ENOKEY ? 503 : 502, "http: %.110s", err.text);
		return;
	}
	if (h->expect_continue && !x->body_done)
		buf_puts(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
	x->lookup.done = on_addresses;
	r = lookup_start(c->client.jail->services->resolver, &x->origin, in->loopback != 0,
	        &x->lookup, &err);
	if (r < 0)
		refuse_upstream(c, 502, &err);
	else if (r == 1)
		start(c);
}

static size_t unsent(const struct exchange *x)
{
	return x->body.len - x->sent;
}

/* What was sent need not be kept any longer. */
static void forget_sent(struct exchange *x)
{
	x->replayable = false;
	buf_consume(&x->body, x->sent);
	x->sent = 0;
}

void exchange_feed(struct http_conn *c)
{
	struct exchange *x = &c->x;
	while (c->in.len && !x->body_done && !x->body_bad && unsent(x) < EXCHANGE_BODY_HIGH) {
		size_t room = EXCHANGE_BODY_HIGH - unsent(x), k;
		if (x->is_chunked) {
			ssize_t n = chunked_decode(&x->chunks, c->in.p, c->in.len, &x->body, room);
			x->body_bad = n < 0;
			x->body_done = x->chunks.done;
			k = n < 0 ? 0 : (size_t)n;
		} else {
			k = c->in.len < room ? c->in.len : room;
			k = (int64_t)k < x->left ? k : (size_t)x->left;
			buf_put(&x->body, c->in.p, k);
			x->left -= (int64_t)k;
			x->body_done = x->left == 0;
		}
		buf_consume(&c->in, k);
	}
	if (x->starved && (unsent(x) || x->body_done || x->body_bad)) {
		x->starved = false;
		transfer_resume(x->transfer);
	}
}

void exchange_drained(struct http_conn *c)
{
	if (!c->x.paused || c->out.len > EXCHANGE_OUT_LOW)
		return;
	c->x.paused = false;
	transfer_resume(c->x.transfer);
}

/* ---- libcurl calls ---- */

static ssize_t on_pull(void *ctx, char *p, size_t n)
{
	struct http_conn *c = ctx;
	struct exchange *x = &c->x;
	if (c->client.ended)
		return TRANSFER_ABORT;
	x->starved = false; /* also asked after a resume that meant the other direction */
	exchange_feed(c);
	if (x->body_bad)
		return TRANSFER_ABORT;
	size_t k = unsent(x) < n ? unsent(x) : n;
	if (k == 0 && !x->body_done) {
		x->starved = true;
		return TRANSFER_PAUSE;
	}
	if (k == 0)
		return 0;
	memcpy(p, x->body.p + x->sent, k);
	x->sent += k;
	if (!x->replayable || x->sent > EXCHANGE_REPLAY)
		forget_sent(x);
	exchange_feed(c);
	http_conn_interest(c);
	client_deadline(&c->client, EXCHANGE_IDLE_MS);
	return (ssize_t)k;
}

static bool on_rewind(void *ctx)
{
	struct http_conn *c = ctx;
	struct exchange *x = &c->x;
	if (c->client.ended || !x->replayable)
		return false;
	x->sent = 0;
	return true;
}

/* Which fields are passed on, and how the body will be delimited for the jail. */
static enum exchange_framing frame(
        const struct exchange *x, int status, const struct http_field *fields, size_t n)
{
	size_t lengths = 0, coded = 0;
	if (strcasecmp(x->method, "HEAD") == 0 || status == 204 || status == 304)
		return FRAME_NONE;
	for (size_t i = 0; i < n; i++) {
		lengths += http_is(fields[i].name, "content-length");
		coded += http_is(fields[i].name, "transfer-encoding");
	}
	if (lengths == 1 && coded == 0)
		return FRAME_LENGTH;
	return x->minor >= 1 ? FRAME_CHUNKED : FRAME_CLOSE;
}

static void put_fields(struct http_conn *c, const struct http_field *fields, size_t n)
{
	struct exchange *x = &c->x;
	bool length = x->framing == FRAME_LENGTH || x->framing == FRAME_NONE;
	for (size_t i = 0; i < n; i++) {
		const struct http_field *f = &fields[i];
		if (http_hop_by_hop(f->name, fields, n) || http_is(f->name, "alt-svc") ||
		        (!length && http_is(f->name, "content-length")))
			continue;
		buf_put(&c->out, f->name.p, f->name.n);
		buf_puts(&c->out, ": ");
		buf_put(&c->out, f->value.p, f->value.n);
		buf_puts(&c->out, "\r\n");
	}
	if (x->framing == FRAME_CHUNKED)
		buf_puts(&c->out, "Transfer-Encoding: chunked\r\n");
	if (x->framing == FRAME_CLOSE)
		x->keep_alive = false;
	if (!x->keep_alive)
		buf_puts(&c->out, "Connection: close\r\n");
	else if (x->minor == 0)
		buf_puts(&c->out, "Connection: keep-alive\r\n");
}

static int on_head(void *ctx, int status, const char *lines, size_t n)
{
	struct http_conn *c = ctx;
	struct exchange *x = &c->x;
	struct http_field fields[RESPONSE_FIELDS];
	size_t nfields = 0;
	if (c->client.ended)
		return -ECONNRESET;
	for (const char *p = lines, *end = lines + n, *lf; p < end; p = lf + 1) {
		lf = memchr(p, '\n', (size_t)(end - p));
		if (!lf)
			break;
		size_t len = (size_t)(lf - p) - (lf > p && lf[-1] == '\r');
		/* A line that is no field would end or forge one of ours: it stays out. */
		if (!http_field_parse(p, len, &fields[nfields]))
			continue;
		if (++nfields == RESPONSE_FIELDS)
			return -E2BIG;
	}
	forget_sent(x);
	x->status = status;
	x->framing = frame(x, status, fields, nfields);
	buf_printf(&c->out, "HTTP/1.1 %d %s\r\n", status, http_conn_phrase(status));
	put_fields(c, fields, nfields);
	buf_puts(&c->out, "\r\n");
	if (c->out.failed)
		return c->out.failed;
	http_conn_flush(c);
	return c->client.ended ? -ECONNRESET : 0;
}

static ssize_t on_body(void *ctx, const char *p, size_t n)
{
	struct http_conn *c = ctx;
	struct exchange *x = &c->x;
	if (c->client.ended)
		return TRANSFER_ABORT;
	if (x->framing == FRAME_NONE)
		return (ssize_t)n;
	if (c->out.len >= EXCHANGE_OUT_HIGH) {
		x->paused = true;
		return TRANSFER_PAUSE;
	}
	if (x->framing == FRAME_CHUNKED)
		buf_printf(&c->out, "%zx\r\n", n);
	buf_put(&c->out, p, n);
	if (x->framing == FRAME_CHUNKED)
		buf_puts(&c->out, "\r\n");
	if (c->out.failed)
		return TRANSFER_ABORT;
	/* At once: an event of a stream is worth more now than a full packet later. */
	http_conn_flush(c);
	client_deadline(&c->client, EXCHANGE_IDLE_MS);
	return c->client.ended ? TRANSFER_ABORT : (ssize_t)n;
}

/* Once per exchange that reached the upstream, however it ended. */
static void count(struct http_conn *c, const char *how)
{
	struct exchange *x = &c->x;
	uint64_t in, out;
	char reason[128];
	transfer_bytes(x->transfer, &in, &out);
	if (out == 0)
		return;
	if (x->status)
		snprintf(reason, sizeof(reason), "%.60s: %.20s, status %d%s", x->name, x->method,
		        x->status, how);
	else
		snprintf(reason, sizeof(reason), "%.60s: %.20s, no response%s", x->name, x->method,
		        how);
	report_allowed(report_of(c), x->origin.host, x->origin.port, reason, in, out);
}

static void fail(struct http_conn *c, const struct err *e)
{
	struct exchange *x = &c->x;
	if (x->status == 0 && x->body_bad) {
		refuse(c, 400, "http: the chunked request body is malformed");
	} else if (x->status == 0) {
		refuse_upstream(c, e->code == -ETIMEDOUT ? 504 : 502, e);
	} else {
		char reason[128];
		snprintf(reason, sizeof(reason), "http: upstream %.110s", e->text);
		report_denied(report_of(c), x->origin.host, x->origin.port, reason);
		/* Cut visibly: a clean end would pass for a whole response. */
		client_end(&c->client, true);
	}
}

static void on_end(void *ctx, const struct err *e)
{
	struct http_conn *c = ctx;
	struct exchange *x = &c->x;
	if (c->client.ended)
		return; /* counted and freed at its burial */
	count(c, e ? ", failed" : "");
	transfer_free(take(x->transfer));
	if (e) {
		fail(c, e);
		return;
	}
	if (x->framing == FRAME_CHUNKED)
		buf_puts(&c->out, "0\r\n\r\n");
	/* A response before the end of the request leaves body bytes that nobody will read. */
	http_conn_next(c, x->keep_alive && x->body_done);
}

static const struct transfer_ops ops = {
        .head = on_head, .body = on_body, .pull = on_pull, .rewind = on_rewind, .end = on_end};

/* ---- ends ---- */

void exchange_late(struct http_conn *c)
{
	struct err err;
	if (c->x.transfer) {
		count(c, ", timed out");
		transfer_free(take(c->x.transfer));
	}
	lookup_cancel(&c->x.lookup);
	err_set(&err, -ETIMEDOUT, "%s: no byte moved for %d minutes", c->x.origin.host,
	        EXCHANGE_IDLE_MS / 60000);
	fail(c, &err);
}

void exchange_done(struct http_conn *c)
{
	struct exchange *x = &c->x;
	lookup_cancel(&x->lookup);
	if (x->transfer) {
		count(c, ", cancelled");
		transfer_free(take(x->transfer));
	}
	buf_done(&x->body);
}
