#include "egress/exchange.h"

#include "base/mem.h"
#include "egress/http_answer.h"
#include "egress/http_conn.h"
#include "egress/judge.h"
#include "egress/secrets.h"
#include "egress/upstream.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/*
 * Order of one exchange:
 *
 *	judge.h		Host, port and dialled address name the same entry of the policy
 *	prepare		libcurl handle, headers passed on, credential put in place
 *	lookup		addresses of the upstream, judged
 *	start		from here libcurl calls back: pull (request body), head, body, end
 *
 * Everything that needs the head's bytes happens before they leave `in`.
 */

enum { RESPONSE_FIELDS = 200 };

#define TEXT(literal) ((struct http_text){(literal), sizeof(literal) - 1})

void exchange_init(struct exchange *x)
{
	memset(x, 0, sizeof(*x));
	x->rule = -1;
	x->body = (struct buf)BUF_INIT(EXCHANGE_REPLAY + EXCHANGE_BODY_HIGH);
	x->replayable = true;
}

/* ---- the request ---- */

static bool credential(struct http_text name, const struct policy_inject *in)
{
	return in && in->secret[0] &&
	       (http_is(name, in->header) || http_is(name, "authorization") ||
	               http_is(name, "x-api-key"));
}

/* What the jail's program says is passed on, but for what concerns its connection to us, and for
 * credentials: those are placeholders, and the real one follows. */
static int pass_headers(
        struct transfer *t, const struct http_head *h, const struct policy_inject *in)
{
	bool secret = in && in->secret[0];
	int r = 0;
	for (size_t i = 0; r == 0 && i < h->nfields; i++) {
		const struct http_field *f = &h->fields[i];
		/* What is not compressed can be read by the meter. */
		bool ours = http_is(f->name, "host") || http_is(f->name, "content-length") ||
		            http_is(f->name, "expect") ||
		            (in && http_is(f->name, "accept-encoding")) ||
		            (secret && http_is(f->name, "range")); /* a part is not found */
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

static size_t head_bytes(const struct http_head *h)
{
	size_t n = h->method.n + h->target.n + strlen("  HTTP/1.1\r\n\r\n");
	for (size_t i = 0; i < h->nfields; i++)
		n += h->fields[i].name.n + h->fields[i].value.n + strlen(": \r\n");
	return n;
}

static void take_head(struct http_conn *c, const struct http_head *h, const struct judge_grant *g)
{
	struct exchange *x = &c->x;
	char host[POLICY_HOST_MAX];
	memcpy(host, x->name, sizeof(host));
	buf_done(&x->body);
	mask_done(&x->mask);
	free(x->path);
	exchange_init(x);
	memcpy(x->name, host, sizeof(host));
	x->injected = g->inject != NULL;
	if (g->rule)
		x->rule = (int)(g->rule - c->client.jail->names.book->policy.rules);
	snprintf(x->method, sizeof(x->method), "%.*s", (int)h->method.n, h->method.p);
	const char *query = memchr(h->target.p, '?', h->target.n);
	x->path = xstrndup(h->target.p, query ? (size_t)(query - h->target.p) : h->target.n);
	x->minor = h->minor;
	x->keep_alive = h->keep_alive;
	x->head_bytes = head_bytes(h);
	x->replayable = h->content_length <= EXCHANGE_REPLAY;
	x->is_chunked = h->chunked;
	x->left = h->content_length > 0 ? h->content_length : 0;
	x->body_done = !h->chunked && x->left == 0;
}

/* Of `want` bytes of either direction, how many may move: 0 for later, -EDQUOT. */
static ssize_t allowed(struct http_conn *c, size_t want)
{
	ssize_t n = jails_allow(c->client.jail, c->x.rule, c->x.charge.secret, want);
	c->x.spent = n == -EDQUOT;
	if (n == 0) {
		c->x.waiting = true;
		client_deadline(&c->client, USAGE_WAIT_MS);
	}
	return n;
}

static void moved(struct http_conn *c, size_t n)
{
	jails_count(c->client.jail, c->x.rule, c->x.charge.secret, n);
	if (!c->x.waiting)
		client_deadline(&c->client, EXCHANGE_IDLE_MS);
}

/* allowed() said -EDQUOT: a budget, or the bytes of the rule. */
static void fail_spent(struct http_conn *c)
{
	const struct policy *p = &c->client.jail->names.book->policy;
	char reason[128] = "http: the budget's bytes are used up", rule[RULE_TEXT_MAX];
	bool budget = !purse_may_move(&c->client.jail->purse, p, c->x.charge.secret);
	if (!budget && c->x.rule >= 0) {
		rule_text(&p->rules[c->x.rule], rule);
		snprintf(reason, sizeof(reason), "http: the bytes of rule %.80s are used up", rule);
	}
	const struct report_of what =
	        judge_asked(c, budget ? EGRESS_REMEDY_NONE : EGRESS_REMEDY_BYTES);
	if (c->x.status == 0) {
		http_conn_refuse(c, budget ? 429 : 403, what, reason);
	} else {
		report_denied(&c->client.jail->report, &what, reason);
		client_end(&c->client, true);
	}
}

static void start(struct http_conn *c)
{
	struct exchange *x = &c->x;
	struct err err;
	ssize_t most = allowed(c, 1);
	x->held = most == 0;
	if (most < 0)
		fail_spent(c);
	else if (most > 0 && transfer_start(x->transfer, &x->lookup, &err) < 0)
		judge_refuse_upstream(c, 502, &err);
	else if (most > 0)
		moved(c, x->head_bytes);
}

static void on_addresses(struct lookup *l, const struct err *e)
{
	struct http_conn *c = container_of(l, struct http_conn, x.lookup);
	if (c->client.ended || c->state != HTTP_EXCHANGE)
		return;
	if (e)
		judge_refuse_upstream(c, 502, e);
	else
		start(c);
}

static const struct transfer_ops ops;

/* Where it goes, and what that may be. */
static int set_origin(const struct http_conn *c, const struct judge_grant *g, struct origin *to,
        struct reach *reach, struct err *e)
{
	if (g->inject) {
		*reach = (struct reach){.any = g->inject->loopback != 0};
		return origin_parse(g->inject->upstream, to, e);
	}
	*reach = (struct reach){.n = g->rule->ncidrs};
	memcpy(reach->cidrs, g->rule->cidrs, sizeof(reach->cidrs));
	*to = (struct origin){.tls = c->tls != NULL, .port = (uint16_t)c->place.port};
	for (size_t i = 0; c->x.name[i]; i++)
		to->host[i] = (char)tolower((unsigned char)c->x.name[i]);
	return 0;
}

static struct connections *own_connections(struct jail *j)
{
	if (!j->connections)
		j->connections = connections_new(j->services->upstream);
	return j->connections;
}

static int prepare(
        struct http_conn *c, const struct http_head *h, const struct judge_grant *g, struct err *e)
{
	struct exchange *x = &c->x;
	const struct services *s = c->client.jail->services;
	const struct policy_inject *in = g->inject;
	bool with_secret = in && in->secret[0];
	size_t n = 0;
	const char *secret = with_secret ? secrets_find(s->secrets, in->secret, &n) : NULL;
	if (with_secret && !secret)
		return err_set(e, -ENOKEY, "secret %s is not configured", in->secret);
	struct transfer_spec spec = {.origin = &x->origin,
	        .method = h->method,
	        .target = h->target,
	        .fresh = !x->replayable,
	        .body_bytes = body_bytes(h),
	        .ops = &ops,
	        .ctx = c};
	if (!with_secret)
		spec.own = own_connections(c->client.jail);
	int r = set_origin(c, g, &x->origin, &spec.reach, e);
	if (r < 0)
		return r;
	x->reach = spec.reach;
	x->transfer = transfer_new(s->upstream, &spec, e);
	if (!x->transfer)
		return e->code;
	r = pass_headers(x->transfer, h, in);
	if (r == 0 && in)
		r = transfer_header(x->transfer, TEXT("accept-encoding"), "", TEXT("identity"));
	if (r == 0 && secret) {
		mask_begin(&x->mask, secret, n);
		r = transfer_header(x->transfer, (struct http_text){in->header, strlen(in->header)},
		        in->prefix, (struct http_text){secret, n});
	}
	return r < 0 ? err_set(e, r, "the request's headers do not fit") : 0;
}

static bool may_spend(
        struct http_conn *c, const struct policy_inject *in, const struct http_head *h)
{
	struct jail *j = c->client.jail;
	struct purse_met met = {0};
	if (charge_begin(&c->x.charge, &j->purse, &j->names.book->policy, in, h, &met))
		return true;
	judge_refuse(c, 429, "%s", met.reason);
	return false;
}

void exchange_begin(struct http_conn *c, const struct http_head *h)
{
	struct err err;
	struct exchange *x = &c->x;
	struct judge_grant g = {0};
	if (!judge_request(c, h, &g))
		return;
	take_head(c, h, &g);
	if (g.inject && !may_spend(c, g.inject, h))
		return;
	int r = prepare(c, h, &g, &err);
	if (r < 0) {
		judge_refuse(c, r == -ENOKEY ? 503 : 502, "http: %.110s", err.text);
		return;
	}
	if (h->expect_continue && !x->body_done)
		buf_puts(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
	x->lookup.done = on_addresses;
	r = lookup_start(
	        c->client.jail->services->resolver, &x->origin, &x->reach, &x->lookup, &err);
	if (r < 0)
		judge_refuse_upstream(c, 502, &err);
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
		size_t room = EXCHANGE_BODY_HIGH - unsent(x), had = x->body.len, k;
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
		if (x->body.len > had)
			charge_asked(&x->charge, x->body.p + had, x->body.len - had);
		buf_consume(&c->in, k);
	}
	if (x->starved && (unsent(x) || x->body_done || x->body_bad)) {
		x->starved = false;
		transfer_resume(x->transfer);
	}
}

void exchange_drained(struct http_conn *c)
{
	if (!c->x.paused || c->x.waiting || c->out.len > EXCHANGE_OUT_LOW)
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
	ssize_t most = allowed(c, k);
	if (most <= 0) {
		x->starved = most == 0;
		return most == 0 ? TRANSFER_PAUSE : TRANSFER_ABORT;
	}
	k = (size_t)most;
	memcpy(p, x->body.p + x->sent, k);
	x->sent += k;
	if (!x->replayable || x->sent > EXCHANGE_REPLAY)
		forget_sent(x);
	exchange_feed(c);
	http_conn_interest(c);
	moved(c, k);
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
	charge_head(&x->charge, status, fields, nfields);
	buf_printf(&c->out, "HTTP/1.1 %d %s\r\n", status, http_phrase(status));
	size_t at = c->out.len;
	put_fields(c, fields, nfields);
	mask_text(&x->mask, c->out.p + at, c->out.len - at);
	buf_puts(&c->out, "\r\n");
	if (c->out.failed)
		return c->out.failed;
	http_conn_flush(c);
	moved(c, n);
	return c->client.ended ? -ECONNRESET : 0;
}

static void put_body(struct http_conn *c, const char *p, size_t n)
{
	struct exchange *x = &c->x;
	if (n == 0)
		return; /* an empty chunk would be the last one */
	if (x->framing == FRAME_CHUNKED)
		buf_printf(&c->out, "%zx\r\n", n);
	buf_put(&c->out, p, n);
	if (x->framing == FRAME_CHUNKED)
		buf_puts(&c->out, "\r\n");
	charge_answered(&x->charge, p, n);
}

static ssize_t on_body(void *ctx, const char *p, size_t n)
{
	struct http_conn *c = ctx;
	struct exchange *x = &c->x;
	if (c->client.ended)
		return TRANSFER_ABORT;
	if (x->framing == FRAME_NONE)
		return (ssize_t)n;
	/* libcurl's chunk is taken whole or not at all: the rate may be exceeded by one. */
	ssize_t most = allowed(c, n);
	if (most < 0)
		return TRANSFER_ABORT;
	if (c->out.len >= EXCHANGE_OUT_HIGH || most == 0) {
		x->paused = true;
		return TRANSFER_PAUSE;
	}
	size_t k;
	const char *plain = mask_pass(&x->mask, p, n, &k);
	if (!plain)
		return TRANSFER_ABORT;
	put_body(c, plain, k);
	if (c->out.failed)
		return TRANSFER_ABORT;
	/* At once: an event of a stream is worth more now than a full packet later. */
	http_conn_flush(c);
	moved(c, n);
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
	charge_settle(&x->charge, &c->client.jail->purse, &c->client.jail->services->prices, !*how);
	if (x->status)
		snprintf(reason, sizeof(reason), "%.60s: %.20s, status %d%s%s", x->name, x->method,
		        x->status, x->mask.found ? ", its secret masked" : "", how);
	else
		snprintf(reason, sizeof(reason), "%.60s: %.20s, no response%s", x->name, x->method,
		        how);
	const struct report_of what = judge_outside(c, EGRESS_REMEDY_NONE);
	report_allowed(&c->client.jail->report, &what, reason, in, out);
}

static void fail(struct http_conn *c, const struct err *e)
{
	struct exchange *x = &c->x;
	if (x->spent) {
		fail_spent(c);
	} else if (x->status == 0 && x->body_bad) {
		judge_refuse(c, 400, "http: the chunked request body is malformed");
	} else if (x->status == 0) {
		judge_refuse_upstream(c, e->code == -ETIMEDOUT ? 504 : 502, e);
	} else {
		char reason[128];
		snprintf(reason, sizeof(reason), "http: upstream %.110s", e->text);
		const struct report_of what = judge_outside(c, EGRESS_REMEDY_NONE);
		report_denied(&c->client.jail->report, &what, reason);
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
	if (!e) {
		size_t n;
		const char *rest = mask_rest(&x->mask, &n);
		put_body(c, rest, n);
	}
	count(c, e ? ", failed" : "");
	transfer_free(take(x->transfer));
	free(take(x->path));
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

static void go_on(struct http_conn *c)
{
	struct exchange *x = &c->x;
	x->waiting = x->starved = x->paused = false;
	client_deadline(&c->client, EXCHANGE_IDLE_MS);
	if (x->held)
		start(c);
	else
		transfer_resume(x->transfer);
}

void exchange_cut(struct http_conn *c, const char *why)
{
	const struct report_of what = judge_asked(c, EGRESS_REMEDY_NONE);
	report_denied(&c->client.jail->report, &what, why);
}

/* By the policy as it is now, and still to the same upstream. */
static bool still_allowed(struct http_conn *c)
{
	struct exchange *x = &c->x;
	struct judge_grant g = {0};
	struct origin to;
	struct reach reach;
	if (!judge_again(c, &g) || set_origin(c, &g, &to, &reach, NULL) < 0 ||
	        strcmp(to.host, x->origin.host) != 0 || to.port != x->origin.port ||
	        to.tls != x->origin.tls)
		return false;
	return !x->transfer || transfer_narrow(x->transfer, &reach);
}

void exchange_follow(struct http_conn *c)
{
	if (c->state != HTTP_EXCHANGE || still_allowed(c))
		return;
	const struct report_of what = judge_asked(c, names_remedy(&c->client.jail->names));
	report_denied(&c->client.jail->report, &what, "the policy allows it no longer");
	client_end(&c->client, true);
}

void exchange_late(struct http_conn *c)
{
	struct err err;
	if (c->x.waiting && c->x.transfer) {
		go_on(c);
		return;
	}
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
	mask_done(&x->mask);
	free(take(x->path));
}
