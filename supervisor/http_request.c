#include "supervisor/http_private.h"

#include "base/http_head.h"
#include "base/mem.h"
#include "supervisor/percent.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

/* ---- life ---- */

struct http_request *http_request_new(struct http_conn *c)
{
	struct http_request *r = xnew(struct http_request);
	r->conn = c;
	r->method = r->path = "";
	list_init(&r->starved);
	return r;
}

/* A text of the head as a string: what stands behind it is no longer needed. */
static char *cut(struct http_request *r, struct http_text t)
{
	char *s = r->text + (t.p - r->text);
	s[t.n] = '\0';
	return s;
}

int http_request_head(struct http_request *r, const char *p, size_t n, struct err *e)
{
	struct http_head h;
	r->text = xcalloc(n + 1, 1);
	memcpy(r->text, p, n);
	int code = http_head_parse(r->text, n, &h, e);
	if (code < 0)
		return code;
	r->method = cut(r, h.method);
	char *query = memchr(r->text + (h.target.p - r->text), '?', h.target.n);
	r->path = cut(r, h.target);
	if (query) {
		*query = '\0';
		r->query = query + 1;
	}
	r->old = h.minor == 0;
	r->keep_alive = h.keep_alive;
	r->expects = h.expect_continue;
	r->chunked = h.chunked;
	r->left = h.content_length > 0 ? (uint64_t)h.content_length : 0;
	r->nfields = h.nfields;
	r->fields = xcalloc(h.nfields, sizeof(*r->fields));
	for (size_t i = 0; i < h.nfields; i++)
		r->fields[i] = (struct http_pair){
		        .name = cut(r, h.fields[i].name),
		        .value = cut(r, h.fields[i].value),
		};
	return 0;
}

static void pairs_free(struct http_pair *pairs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(pairs[i].name);
		free(pairs[i].value);
	}
}

void http_request_free(struct http_request *r)
{
	if (!r)
		return;
	list_remove(&r->starved);
	http_hold(r, 0);
	free(r->text);
	free(r->fields);
	for (size_t i = 0; i < HTTP_PARAMS; i++)
		free(r->params[i]);
	pairs_free(r->queries, r->nqueries);
	free(r->queries);
	pairs_free(r->headers, r->nheaders);
	free(r->headers);
	buf_done(&r->body);
	buf_done(&r->reply);
	free(r);
}

void http_request_gone(struct http_request *r)
{
	void (*gone)(void *) = take(r->gone);
	void (*over)(void *) = take(r->source.gone);
	if (over)
		over(r->source.ctx);
	else if (gone)
		gone(r->gone_ctx);
}

/* ---- what a handler sees ---- */

bool http_request_is_head(const struct http_request *r)
{
	return strcmp(r->method, "HEAD") == 0;
}

const char *http_method(const struct http_request *r)
{
	return r->method;
}

const char *http_path(const struct http_request *r)
{
	return r->path;
}

const char *http_header(const struct http_request *r, const char *name)
{
	for (size_t i = 0; i < r->nfields; i++)
		if (strcasecmp(r->fields[i].name, name) == 0)
			return r->fields[i].value;
	return NULL;
}

int http_each_header(const struct http_request *r,
        int (*each)(void *ctx, const char *name, const char *value), void *ctx)
{
	int rc = 0;
	for (size_t i = 0; rc >= 0 && i < r->nfields; i++)
		rc = each(ctx, r->fields[i].name, r->fields[i].value);
	return rc;
}

bool http_has_body(const struct http_request *r)
{
	return r->chunked || r->left > 0;
}

void http_take_body(struct http_request *r, const struct http_sink *sink)
{
	r->sink = *sink;
}

const char *http_body(const struct http_request *r, size_t *ret_len)
{
	*ret_len = r->body.len;
	return r->body.p ? r->body.p : "";
}

const struct auth_peer *http_peer(const struct http_request *r)
{
	return &r->conn->conn.peer;
}

const char *http_actor(const struct http_request *r)
{
	return r->conn->actor;
}

void http_set_actor(struct http_request *r, const char *id)
{
	(void)str_copy(r->conn->actor, sizeof(r->conn->actor), id);
}

void http_set_route(struct http_request *r, const void *route)
{
	r->route = route;
}

const void *http_route(const struct http_request *r)
{
	return r->route;
}

const char *http_param(const struct http_request *r, unsigned n)
{
	return n < HTTP_PARAMS ? r->params[n] : NULL;
}

int http_add_param(struct http_request *r, const char *encoded, size_t n)
{
	size_t i = 0;
	while (i < HTTP_PARAMS && r->params[i])
		i++;
	assert(i < HTTP_PARAMS); /* a route pattern with more is a mistake of ours */
	r->params[i] = percent_decode(encoded, n);
	return r->params[i] ? 0 : -EINVAL;
}

/* ---- the query ---- */

const char *http_raw_query(const struct http_request *r)
{
	return r->query;
}

/* As forms send it: a plus is a blank. */
static char *decode(const char *p, size_t n)
{
	auto_free char *s = xstrndup(p, n);
	for (char *c = s; *c; c++)
		if (*c == '+')
			*c = ' ';
	return percent_decode(s, n);
}

static void decode_query(struct http_request *r)
{
	const char *p = r->decoded ? NULL : r->query;
	r->decoded = true;
	while (p && *p) {
		size_t n = strcspn(p, "&"), name = strcspn(p, "&=");
		if (n > 0) {
			r->queries = xrealloc(r->queries, r->nqueries + 1, sizeof(*r->queries));
			r->queries[r->nqueries++] = (struct http_pair){
			        .name = decode(p, name),
			        .value = name < n ? decode(p + name + 1, n - name - 1) : NULL,
			};
		}
		p += n + (p[n] == '&');
	}
}

const char *http_query(struct http_request *r, const char *name)
{
	decode_query(r);
	for (size_t i = 0; i < r->nqueries; i++)
		if (r->queries[i].name && strcmp(r->queries[i].name, name) == 0)
			return r->queries[i].value;
	return NULL;
}

int http_query_flag(struct http_request *r, const char *name, bool *ret, struct err *e)
{
	const char *text = http_query(r, name);
	if (!text || strcmp(text, "0") == 0 || strcmp(text, "false") == 0)
		*ret = false;
	else if (strcmp(text, "1") == 0 || strcmp(text, "true") == 0)
		*ret = true;
	else
		return err_set(e, -EINVAL, "%s: must be 0 or 1", name);
	return 0;
}

void http_each_query(struct http_request *r,
        void (*each)(void *ctx, const char *name, const char *value), void *ctx)
{
	decode_query(r);
	for (size_t i = 0; i < r->nqueries; i++)
		each(ctx, r->queries[i].name, r->queries[i].value);
}

/* ---- answers ---- */

void http_add_header(struct http_request *r, const char *name, const char *value)
{
	r->headers = xrealloc(r->headers, r->nheaders + 1, sizeof(*r->headers));
	r->headers[r->nheaders++] = (struct http_pair){xstrdup(name), xstrdup(value)};
}

const char *http_answer_header(const struct http_request *r, const char *name)
{
	for (size_t i = 0; i < r->nheaders; i++)
		if (strcasecmp(r->headers[i].name, name) == 0)
			return r->headers[i].value;
	return NULL;
}

static void answer(struct http_request *r, int status)
{
	assert(!r->answered);
	buf_done(&r->body); /* a stream may go on for hours */
	http_hold(r, r->reply.len);
	r->answered = true;
	r->status = status;
	const struct http_service *s = &r->conn->http->service;
	if (s->answered)
		s->answered(s->ctx, r, status);
	if (r->conn->http->running != r->conn)
		http_queue(r->conn);
}

void http_reply(struct http_request *r, int status, const char *type, struct buf *body)
{
	if (body && !http_room(r, body->len)) {
		buf_done(body);
		http_crowded(r);
		return;
	}
	if (type)
		http_add_header(r, "Content-Type", type);
	if (body) {
		r->reply = *body;
		*body = (struct buf)BUF_INIT(0);
	}
	r->gone = NULL;
	answer(r, status);
}

void http_on_gone(struct http_request *r, void (*gone)(void *ctx), void *ctx)
{
	r->gone = gone;
	r->gone_ctx = ctx;
}

void http_stream(struct http_request *r, int status, const char *type, int64_t length,
        const struct http_source *source)
{
	assert(source->gone);
	r->source = *source;
	r->streams = true;
	r->stream_left = length;
	r->gone = NULL;
	if (type)
		http_add_header(r, "Content-Type", type);
	answer(r, status);
}

void http_wake(struct http_request *r)
{
	http_queue(r->conn);
}

void http_upgrade(struct http_request *r, const char *protocol,
        void (*start)(void *ctx, struct http_upgraded *u, int fd, const void *p, size_t n),
        void *ctx)
{
	r->start = start;
	r->start_ctx = ctx;
	http_add_header(r, "Upgrade", protocol);
	answer(r, 101); /* `gone` stays until the socket is handed over */
}
