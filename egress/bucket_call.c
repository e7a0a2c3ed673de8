#include "egress/bucket_call.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/version.h"
#include "egress/http.h"
#include "egress/jails.h"
#include "egress/secrets.h"
#include "egress/sigv4.h"
#include "egress/upstream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	ANSWER_MOST = 64 << 10,
	PATH_MOST = 8 << 10,
	KEY_MOST = 1024,   /* S3's */
	LEAST_PER_MS = 16, /* 16 KB a second: what is slower has no end */
	FIELDS = 9,
	VALUE_MOST = 8 << 10,
};

/* ---- where it is ---- */

static void host_text(const struct origin *o, char *to, size_t size)
{
	bool v6 = strchr(o->host, ':') != NULL;
	int n = snprintf(to, size, "%s%s%s", v6 ? "[" : "", o->host, v6 ? "]" : "");
	if (o->port != (o->tls ? 443 : 80)) /* as libcurl writes it */
		(void)snprintf(to + n, size - (size_t)n, ":%u", o->port);
}

int object_place(const struct bucket *b, const char *key, struct object_place *ret, struct err *e)
{
	struct object_place p = {.path = BUF_INIT(PATH_MOST)};
	int r = origin_parse(b->endpoint, &p.origin, e);
	if (r < 0)
		return r;
	size_t n = strlen(b->prefix);
	if (n + (n > 0) + strlen(key) > KEY_MOST)
		return err_set(e, -ENAMETOOLONG, "its name has more than S3's %d bytes", KEY_MOST);
	char host[sizeof(p.origin.host)];
	(void)str_copy(host, sizeof(host), p.origin.host); /* as large */
	if (!b->path_style && snprintf(p.origin.host, sizeof(p.origin.host), "%s.%s", b->name,
	                              host) >= (int)sizeof(p.origin.host))
		return err_set(e, -EINVAL, "the bucket in front of the endpoint is too long");
	host_text(&p.origin, p.host, sizeof(p.host));
	buf_putc(&p.path, '/');
	if (b->path_style)
		buf_printf(&p.path, "%s/", b->name);
	if (n)
		buf_printf(&p.path, "%s/", b->prefix);
	sigv4_encode(&p.path, key, strlen(key), true);
	if (p.path.failed) {
		buf_done(&p.path);
		return err_set(e, -ENAMETOOLONG, "its name is too long");
	}
	*ret = p;
	return 0;
}

void object_place_done(struct object_place *p)
{
	buf_done(&p->path);
}

/* ---- what signs ---- */

static const char *secret(struct services *s, const char *name, size_t *ret_n, struct err *e)
{
	const char *value = secrets_find(s->secrets, name, ret_n);
	if (!value)
		err_set(e, -ENOKEY, "secret %s is not configured", name);
	return value;
}

static int find_keys(
        struct services *s, const struct bucket *b, struct sigv4_keys *ret, struct err *e)
{
	ret->region = b->region;
	ret->access = secret(s, b->access_key, &ret->naccess, e);
	ret->secret = ret->access ? secret(s, b->secret_key, &ret->nsecret, e) : NULL;
	return ret->secret ? 0 : -ENOKEY;
}

static void wipe(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
}
#define auto_wiped __attribute__((cleanup(wipe)))

/* Owned; "" where root names none. */
static char *find_token(struct services *s, const struct bucket *b, struct err *e)
{
	size_t n = 0;
	const char *value = b->session_token[0] ? secret(s, b->session_token, &n, e) : "";
	return value ? xstrndup(value, n) : NULL;
}

int object_link(struct services *s, const struct bucket *b, const struct object_place *at,
        int64_t now_ms, struct buf *to, struct err *e)
{
	struct sigv4_keys keys;
	auto_wiped char *token = NULL;
	int r = find_keys(s, b, &keys, e);
	if (r == 0)
		token = find_token(s, b, e);
	if (!token)
		return -ENOKEY;
	buf_printf(to, "%s://%s%s?", at->origin.tls ? "https" : "http", at->host, at->path.p);
	return sigv4_link(
	        &keys, at->host, at->path.p, token, now_ms, (unsigned)(b->link_ms / 1000), to, e);
}

/* ---- the fields ---- */

struct fields {
	struct sigv4_field all[FIELDS];
	size_t n;
};

static void add(struct fields *f, const char *name, const char *value)
{
	if (value && value[0])
		f->all[f->n++] = (struct sigv4_field){name, value};
}

static int put(struct transfer *t, const char *name, const char *value)
{
	return transfer_header(t, (struct http_text){name, strlen(name)}, "",
	        (struct http_text){value, strlen(value)});
}

/* All that is signed, sorted, and the signature. */
static int put_fields(struct call *c, const struct call_spec *x, struct err *e)
{
	char stamp[SIGV4_STAMP];
	struct sigv4_keys keys;
	struct fields f = {.n = 0};
	auto_wiped char *token = find_token(c->services, x->bucket, e);
	auto_buf struct buf signature = BUF_INIT(VALUE_MOST);
	bool begins = x->type != NULL;
	int64_t now = clock_wall_ms();
	int r = token ? find_keys(c->services, x->bucket, &keys, e) : -ENOKEY;
	if (r < 0)
		return r;
	sigv4_stamp(now, stamp);
	/* What an agent wrote is to be saved, not shown, also where a link leads. */
	add(&f, "content-disposition", begins ? "attachment" : NULL);
	add(&f, "content-type", x->type);
	add(&f, "host", x->at->host);
	add(&f, "x-amz-content-sha256", x->payload);
	add(&f, "x-amz-date", stamp);
	add(&f, "x-amz-meta-sha256", x->sha256);
	add(&f, "x-amz-security-token", token);
	if (begins && x->bucket->sse)
		add(&f, "x-amz-server-side-encryption", bucket_sse_names[x->bucket->sse]);
	const struct sigv4_request q = {.method = x->method,
	        .path = x->at->path.p,
	        .query = x->query,
	        .fields = f.all,
	        .nfields = f.n,
	        .payload = x->payload,
	        .at_ms = now};
	r = sigv4_authorize(&keys, &q, &signature, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < f.n && r == 0; i++)
		r = put(c->transfer, f.all[i].name, f.all[i].value);
	if (r == 0)
		r = put(c->transfer, "authorization", signature.p);
	if (r == 0)
		r = put(c->transfer, "user-agent", "agentbox/" AGENTBOX_VERSION);
	return r < 0 ? err_set(e, r, "the headers do not fit") : 0;
}

/* ---- the end ---- */

void call_cancel(struct call *c)
{
	if (!c->services)
		return;
	reactor_disarm(&c->still);
	lookup_cancel(&c->lookup);
	transfer_free(take(c->transfer));
	buf_done(&c->answer);
	c->services = NULL;
}

static void finish(struct call *c, const struct err *e)
{
	reactor_disarm(&c->still);
	lookup_cancel(&c->lookup);
	c->retry_after_ms = c->transfer ? transfer_retry_after_ms(c->transfer) : 0;
	transfer_free(take(c->transfer));
	c->done(c, e);
}

static void on_still(struct timer *t)
{
	struct call *c = container_of(t, struct call, still);
	struct err e;
	err_set(&e, -ETIMEDOUT, "%s: %s", c->origin->host,
	        c->creeps ? "it takes too long" : "it stands still");
	finish(c, &e);
}

/* Something has gone one way or the other. */
static void moves(struct call *c)
{
	int64_t left = c->deadline_ms - clock_mono_ms();
	c->creeps = left < c->timeout_ms;
	reactor_arm(c->services->reactor, &c->still,
	        !c->creeps ? c->timeout_ms
	        : left > 0 ? left
	                   : 0);
}

/* ---- libcurl calls ---- */

static void take_etag(struct call *c, const struct http_text *v)
{
	if (v->n < sizeof(c->etag) && !memchr(v->p, '<', v->n) && !memchr(v->p, '&', v->n)) {
		memcpy(c->etag, v->p, v->n);
		c->etag[v->n] = '\0';
	}
}

static int on_head(void *ctx, int status, const char *lines, size_t n)
{
	struct call *c = ctx;
	c->status = status;
	for (const char *end = lines + n; lines < end;) {
		const char *nl = memchr(lines, '\n', (size_t)(end - lines));
		const char *line = lines;
		size_t len = (size_t)((nl ? nl : end) - line);
		struct http_field f;
		lines = nl ? nl + 1 : end;
		len -= len && line[len - 1] == '\r';
		if (http_field_parse(line, len, &f) && http_is(f.name, "etag"))
			take_etag(c, &f.value);
	}
	moves(c);
	return 0;
}

static ssize_t on_body(void *ctx, const char *bytes, size_t n)
{
	struct call *c = ctx;
	moves(c);
	return buf_put(&c->answer, bytes, n) < 0 ? TRANSFER_ABORT : (ssize_t)n;
}

static ssize_t on_pull(void *ctx, char *to, size_t n)
{
	struct call *c = ctx;
	uint64_t left = c->bytes - c->sent;
	size_t k = left < n ? (size_t)left : n;
	moves(c);
	if (k && c->text)
		memcpy(to, c->text->p + c->sent, k);
	else if (k && fd_pread_full(c->fd, to, k, (off_t)(c->offset + c->sent)) != (ssize_t)k)
		return TRANSFER_ABORT;
	c->sent += k;
	return (ssize_t)k;
}

static bool on_rewind(void *ctx)
{
	((struct call *)ctx)->sent = 0;
	return true;
}

static void on_end(void *ctx, const struct err *e)
{
	finish(ctx, e);
}

static const struct transfer_ops ops = {
        .head = on_head, .body = on_body, .pull = on_pull, .rewind = on_rewind, .end = on_end};

/* ---- the beginning ---- */

static void on_addresses(struct lookup *l, const struct err *e)
{
	struct call *c = container_of(l, struct call, lookup);
	struct err err;
	if (e)
		finish(c, e);
	else if (transfer_start(c->transfer, l, &err) < 0)
		finish(c, &err);
}

static void prepare(struct call *c, struct services *s, const struct call_spec *x)
{
	c->services = s;
	c->status = 0;
	c->etag[0] = '\0';
	buf_done(&c->answer);
	c->answer = (struct buf)BUF_INIT(ANSWER_MOST);
	c->lookup = (struct lookup){.done = on_addresses};
	c->still.fire = on_still;
	c->text = x->text;
	c->fd = x->fd;
	c->offset = x->offset;
	c->bytes = x->text ? x->text->len : x->bytes;
	c->sent = 0;
	c->origin = &x->at->origin;
	c->timeout_ms = (int64_t)x->bucket->timeout_ms;
	c->deadline_ms = clock_mono_ms() + 4 * c->timeout_ms + (int64_t)(c->bytes / LEAST_PER_MS);
}

static int start(struct call *c, const struct call_spec *x, struct connections *own, struct err *e)
{
	auto_buf struct buf target = BUF_INIT(PATH_MOST + VALUE_MOST);
	struct reach reach = {.n = x->bucket->ncidrs};
	memcpy(reach.cidrs, x->bucket->cidrs, sizeof(reach.cidrs));
	buf_printf(&target, "%s%s%s", x->at->path.p, x->query[0] ? "?" : "", x->query);
	if (target.failed)
		return err_set(e, target.failed, "the request is too long");
	bool empty = strcmp(x->method, "DELETE") == 0;
	struct transfer_spec spec = {.origin = &x->at->origin,
	        .reach = reach,
	        .own = own,
	        .method = {x->method, strlen(x->method)},
	        .target = {target.p, target.len},
	        .body_bytes = empty ? TRANSFER_NO_BODY : (int64_t)c->bytes,
	        .ops = &ops,
	        .ctx = c};
	c->transfer = transfer_new(c->services->upstream, &spec, e);
	int r = c->transfer ? put_fields(c, x, e) : e->code;
	if (r == 0)
		r = lookup_start(c->services->resolver, &x->at->origin, &reach, &c->lookup, e);
	if (r == 1)
		r = transfer_start(c->transfer, &c->lookup, e);
	return r;
}

int call_begin(struct call *c, struct services *s, struct connections *connections,
        const struct call_spec *spec, struct err *e)
{
	prepare(c, s, spec);
	int r = start(c, spec, connections, e);
	if (r == 0)
		moves(c);
	else
		call_cancel(c);
	return r;
}
