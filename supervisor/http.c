/*
 * Theory of operation.
 *
 * Who is connected, for how long, and who makes room: conns.h.  A connection
 * that is cut is shut down; libmicrohttpd then sees its end and tells us.
 *
 * libmicrohttpd runs in the hook phase of a turn and only there: readiness of
 * its epoll descriptor, new connections, wake-ups and timers merely set `dirty`.
 *
 * A request without an answer is suspended; so is a stream with nothing to say.
 * libmicrohttpd does not look at the socket of a suspended connection, so a poll
 * of our own watches it for the client's leaving.  That poll may outlive the
 * request, which is freed by whichever ends last.
 */
#include "supervisor/http.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/conns.h"
#include "supervisor/percent.h"

#include <assert.h>
#include <microhttpd.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum {
	/* A client that takes no byte of its answer for so long is cut; it can come back with
	 * Last-Event-ID. */
	STALL_S = 300,
	/* Headers and buffers of one connection; what is larger gets 431. */
	CONNECTION_MEMORY = 64 << 10,
	/* A body over its limit is read and dropped up to this, so that its sender can read our
	 * 413 instead of a broken pipe; beyond it the connection is cut. */
	DISCARD_MAX = 4 * LIMIT_HTTP_BODY,
	STREAM_BLOCK = 32 << 10,
	/* After "out of descriptors", before we accept again. */
	ACCEPT_PAUSE_MS = 100,
	/* At a handover: from a connection to its first request. */
	FIRST_REQUEST_MS = 500,
	PARAMS_MAX = 4,
	HEADERS_MAX = 6,
};

struct http {
	struct loop *loop;
	struct MHD_Daemon *mhd;
	struct http_service service;
	gid_t socket_gid;
	int listen_fd, epoll_fd; /* borrowed */
	struct conns conns;
	struct conn *adding; /* the one given to MHD_add_connection, until it is told of */
	struct op accept, ready, timer, pause;
	int64_t timer_at_ms, started_ms;
	unsigned watches; /* polls of requests in flight */
	bool dirty;       /* libmicrohttpd must run */
	bool stopped;     /* accepts no more */
	bool closing;
	struct loop_hook hook;
	struct list upgraded; /* of http_upgraded.link */
};

struct http_upgraded {
	struct list link; /* in http.upgraded */
	struct http *http;
	struct MHD_UpgradeResponseHandle *handle;
};

struct pair {
	char *name, *value; /* owned */
};

struct http_request {
	struct http *http;
	struct conn *conn; /* borrowed; NULL once it is closed */
	struct MHD_Connection *mhd;
	char *method, *path; /* owned */
	const void *route;
	char *params[PARAMS_MAX]; /* owned */
	struct pair *queries;     /* owned: decoded so far */
	size_t nqueries;
	struct pair headers[HEADERS_MAX];
	size_t nheaders;
	struct buf body;
	size_t body_limit, discarded;
	bool has_body, too_large, handled;

	struct MHD_Response *response; /* owned until it is queued */
	int status;
	bool answered, suspended;
	bool left; /* the client is gone */
	bool over; /* libmicrohttpd is done with it; freed when the watch is too */
	bool half_closed;
	struct op watch;
	void (*gone)(void *ctx);
	void *gone_ctx;
	struct http_source source;
	void (*start)(void *ctx, struct http_upgraded *u, int fd, const void *p, size_t n);
	void *start_ctx;
};

static void touch(struct http *h)
{
	h->dirty = true;
	loop_again(h->loop);
}

/* ---- connections ---- */

static void on_connection(
        void *ctx, struct MHD_Connection *mc, void **slot, enum MHD_ConnectionNotificationCode what)
{
	struct http *h = ctx;
	(void)mc;
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		*slot = take(h->adding);
		return;
	}
	struct conn *c = *slot;
	if (!c)
		return;
	if (c->request)
		c->request->conn = NULL;
	conns_remove(&h->conns, c);
}

static void adopt(struct http *h, int accepted)
{
	auto_close int fd = accepted;
	struct auth_peer peer;
	struct err e;
	if (auth_peer(fd, h->socket_gid, &peer, &e) < 0) {
		log_warn("http: connection dropped: %s", e.text);
		return;
	}
	bool cut;
	const char *why = conns_room(&h->conns, peer.uid, &cut);
	if (cut)
		touch(h);
	if (why) {
		conns_refuse(fd, why);
		return;
	}
	struct conn *c = conns_add(&h->conns, fd, &peer);
	h->adding = c;
	struct sockaddr_storage addr = {.ss_family = AF_UNIX};
	/* It closes the socket when it refuses. */
	enum MHD_Result ok = MHD_add_connection(
	        h->mhd, take_fd(fd), (struct sockaddr *)&addr, sizeof(sa_family_t));
	if (ok != MHD_YES || h->adding) {
		h->adding = NULL;
		conns_remove(&h->conns, c);
		log_warn("http: a connection could not be taken");
		return;
	}
	touch(h);
}

static void bury(struct http *h);
static void accept_again(struct http *h);

static void on_pause(struct op *op, int res, uint32_t flags)
{
	struct http *h = container_of(op, struct http, pause);
	(void)res;
	(void)flags;
	accept_again(h);
	bury(h);
}

static void on_accept(struct op *op, int res, uint32_t flags)
{
	struct http *h = container_of(op, struct http, accept);
	if (res >= 0 && h->closing)
		fd_close(res);
	else if (res >= 0) /* also one that came while accepting was being stopped */
		adopt(h, res);
	if (loop_more(flags))
		return;
	if (res < 0 && res != -ECANCELED && !h->stopped) {
		log_warn("http: accept: %s", strerror(-res));
		loop_timeout(h->loop, &h->pause, ACCEPT_PAUSE_MS, on_pause);
	} else {
		accept_again(h);
	}
	bury(h);
}

static void accept_again(struct http *h)
{
	if (!h->stopped)
		loop_accept(h->loop, &h->accept, h->listen_fd, on_accept);
}

/* ---- requests ---- */

static void request_free(struct http_request *r)
{
	free(r->method);
	free(r->path);
	for (size_t i = 0; i < PARAMS_MAX; i++)
		free(r->params[i]);
	for (size_t i = 0; i < r->nqueries; i++) {
		free(r->queries[i].name);
		free(r->queries[i].value);
	}
	free(r->queries);
	for (size_t i = 0; i < r->nheaders; i++) {
		free(r->headers[i].name);
		free(r->headers[i].value);
	}
	buf_done(&r->body);
	if (r->response)
		MHD_destroy_response(r->response);
	free(r);
}

/* Tells whoever waits for the request that nothing will come of it any more; once. */
static void tell_gone(struct http_request *r)
{
	void (*gone)(void *) = take(r->gone);
	void (*over)(void *) = take(r->source.gone);
	if (over)
		over(r->source.ctx);
	else if (gone)
		gone(r->gone_ctx);
}

static void resume(struct http_request *r)
{
	if (!r->suspended)
		return;
	r->suspended = false;
	MHD_resume_connection(r->mhd);
	touch(r->http);
}

static void on_watch(struct op *op, int res, uint32_t flags)
{
	struct http_request *r = container_of(op, struct http_request, watch);
	struct http *h = r->http;
	(void)flags;
	h->watches--;
	if (r->over) {
		request_free(r);
		bury(h);
		return;
	}
	if (res <= 0)
		return;
	/* Only its sending direction is closed.  It may still read, but libmicrohttpd takes the end
	 * of input for the client's leaving unless an answer has begun; of a stream the next write
	 * will tell (polling on would wake us at once). */
	r->half_closed = r->answered && !(res & (POLLHUP | POLLERR));
	if (r->half_closed)
		return;
	r->left = true;
	resume(r);
	tell_gone(r);
}

static void suspend(struct http_request *r)
{
	if (r->suspended)
		return;
	r->suspended = true;
	MHD_suspend_connection(r->mhd);
	if (r->watch.inflight || r->half_closed || !r->conn)
		return;
	r->http->watches++;
	loop_poll(r->http->loop, &r->watch, r->conn->fd, 0, false, on_watch);
}

static bool body_announced(struct MHD_Connection *mc)
{
	const char *n =
	        MHD_lookup_connection_value(mc, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
	return (n && strcmp(n, "0") != 0) ||
	       MHD_lookup_connection_value(mc, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

static struct http_request *request_new(
        struct http *h, struct MHD_Connection *mc, const char *path, const char *method)
{
	const union MHD_ConnectionInfo *i =
	        MHD_get_connection_info(mc, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct http_request *r = xnew(struct http_request);
	r->http = h;
	r->mhd = mc;
	r->conn = i->socket_context;
	r->method = xstrdup(method);
	r->path = xstrdup(path);
	r->has_body = body_announced(mc);
	r->conn->request = r;
	return r;
}

static enum MHD_Result queue_answer(struct http_request *r)
{
	struct MHD_Response *response = take(r->response);
	for (size_t i = 0; i < r->nheaders; i++)
		MHD_add_response_header(response, r->headers[i].name, r->headers[i].value);
	enum MHD_Result ok = MHD_queue_response(r->mhd, (unsigned)r->status, response);
	MHD_destroy_response(response); /* counted: the connection holds its own */
	return ok;
}

/* Before the body: is it worth reading? */
static enum MHD_Result take_headers(struct http_request *r)
{
	struct http *h = r->http;
	conns_enter(&h->conns, r->conn, CONN_READING);
	int64_t limit = h->service.headers(h->service.ctx, r);
	const char *length = http_header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);
	r->handled = limit < 0;
	r->body_limit = limit < 0 ? 0 : (size_t)limit;
	r->body = (struct buf)BUF_INIT(r->body_limit);
	if (limit >= 0 && length && strtoull(length, NULL, 10) > r->body_limit) {
		r->too_large = r->handled = true;
		h->service.too_large(h->service.ctx, r);
	}
	/* A client that asks first need not send what we would drop. */
	if (r->response && r->has_body && http_header(r, MHD_HTTP_HEADER_EXPECT))
		return queue_answer(r);
	return MHD_YES;
}

static enum MHD_Result take_body(struct http_request *r, const char *p, size_t n)
{
	if (!r->handled && !r->too_large && buf_put(&r->body, p, n) == 0)
		return MHD_YES;
	r->too_large |= !r->handled;
	r->discarded += n;
	return r->discarded <= DISCARD_MAX ? MHD_YES : MHD_NO;
}

static enum MHD_Result take_request(struct http_request *r)
{
	struct http *h = r->http;
	if (!r->handled) {
		r->handled = true;
		conns_enter(&h->conns, r->conn, CONN_BUSY);
		if (r->too_large)
			h->service.too_large(h->service.ctx, r);
		else
			h->service.request(h->service.ctx, r);
	}
	if (r->left)
		return MHD_NO;
	if (r->response) {
		conns_enter(&h->conns, r->conn, CONN_BUSY);
		return queue_answer(r);
	}
	suspend(r);
	return MHD_YES;
}

static enum MHD_Result on_access(void *ctx, struct MHD_Connection *mc, const char *url,
        const char *method, const char *version, const char *data, size_t *data_size, void **slot)
{
	(void)version;
	struct http_request *r = *slot;
	if (!r) {
		r = *slot = request_new(ctx, mc, url, method);
		return take_headers(r);
	}
	if (*data_size > 0) {
		size_t n = *data_size;
		*data_size = 0;
		return take_body(r, data, n);
	}
	return take_request(r);
}

static void on_completed(
        void *ctx, struct MHD_Connection *mc, void **slot, enum MHD_RequestTerminationCode why)
{
	struct http *h = ctx;
	struct http_request *r = *slot;
	(void)mc;
	(void)why;
	if (!r)
		return;
	*slot = NULL;
	r->over = true;
	tell_gone(r);
	if (r->conn) {
		r->conn->request = NULL;
		r->conn->used = true;
		conns_enter(&h->conns, r->conn, CONN_WAITING);
	}
	if (r->watch.inflight)
		loop_cancel(h->loop, &r->watch);
	else
		request_free(r);
}

/* ---- the turn ---- */

static void on_ready(struct op *op, int res, uint32_t flags)
{
	struct http *h = container_of(op, struct http, ready);
	(void)res;
	(void)flags;
	h->dirty = true;
	bury(h);
}

static void on_timer(struct op *op, int res, uint32_t flags)
{
	struct http *h = container_of(op, struct http, timer);
	(void)res;
	(void)flags;
	h->dirty = true;
	bury(h);
}

static int64_t sooner(int64_t a, int64_t b)
{
	return a < 0 ? b : b < 0 || a < b ? a : b;
}

static void arm_timer(struct http *h)
{
	bool cut;
	int64_t ms = conns_cut_late(&h->conns, &cut);
	if (cut)
		touch(h);
	MHD_UNSIGNED_LONG_LONG theirs;
	if (MHD_get_timeout(h->mhd, &theirs) == MHD_YES)
		ms = sooner(ms, (int64_t)theirs);
	if (ms < 0)
		return;
	if (ms == 0) {
		touch(h);
		return;
	}
	int64_t at = clock_mono_ms() + ms;
	if (!h->timer.inflight) {
		h->timer_at_ms = at;
		loop_timeout(h->loop, &h->timer, ms, on_timer);
	} else if (at < h->timer_at_ms) {
		loop_cancel(h->loop, &h->timer); /* its end sets it anew */
		h->timer_at_ms = at;
	}
}

static void run(struct loop_hook *hook)
{
	struct http *h = container_of(hook, struct http, hook);
	if (!h->dirty || h->closing)
		return;
	h->dirty = false;
	if (MHD_run(h->mhd) != MHD_YES)
		log_err("http: libmicrohttpd refuses to run");
	arm_timer(h);
	/* One shot: readiness is looked at anew each time, so no edge can be lost. */
	if (!h->ready.inflight)
		loop_poll(h->loop, &h->ready, h->epoll_fd, POLLIN, false, on_ready);
}

/* ---- life ---- */

/* Escapes stay as they are: a path is split before it is decoded. */
static size_t keep_escapes(void *ctx, struct MHD_Connection *mc, char *s)
{
	(void)ctx;
	(void)mc;
	return strlen(s);
}

static struct MHD_Daemon *start(struct http *h)
{
	return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET |
	                                MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE,
	        0, NULL, NULL, on_access, h,                                   /* */
	        MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,                  /* */
	        MHD_OPTION_NOTIFY_CONNECTION, on_connection, h,                /* */
	        MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,              /* */
	        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, /* */
	        MHD_OPTION_CONNECTION_LIMIT, CONNS_MAX,                        /* */
	        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)STALL_S,              /* */
	        MHD_OPTION_STRICT_FOR_CLIENT, 1,                               /* */
	        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,                          /* */
	        MHD_OPTION_END);
}

struct http *http_new(struct loop *l, int listen_fd, gid_t socket_gid,
        const struct http_service *service, struct err *e)
{
	struct http *h = xnew(struct http);
	h->loop = l;
	h->listen_fd = listen_fd;
	h->started_ms = clock_mono_ms();
	h->socket_gid = socket_gid;
	h->service = *service;
	conns_init(&h->conns);
	list_init(&h->upgraded);
	h->mhd = start(h);
	const union MHD_DaemonInfo *i =
	        h->mhd ? MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!i) {
		err_set(e, -ENOMEM, "libmicrohttpd does not start");
		if (h->mhd)
			MHD_stop_daemon(h->mhd);
		free(h);
		return NULL;
	}
	h->epoll_fd = i->epoll_fd;
	h->hook.run = run;
	loop_hook(l, &h->hook);
	accept_again(h);
	touch(h);
	return h;
}

void http_stop_accepting(struct http *h)
{
	h->stopped = true;
	loop_cancel(h->loop, &h->accept);
	loop_cancel(h->loop, &h->pause);
}

static bool served(const struct conn *c)
{
	const struct http_request *r = c->request;
	switch (c->state) {
	case CONN_WAITING: /* who connects asks at once, or keeps the connection for later */
		return c->used || clock_mono_ms() - c->since_ms > FIRST_REQUEST_MS;
	case CONN_BUSY: /* without a request: an upgraded one */
		return !r || r->source.gone;
	case CONN_READING:
	case CONN_CUT:
	case CONN_STATES:
		break;
	}
	return c->state == CONN_CUT;
}

bool http_quiet(const struct http *h)
{
	if (h->accept.inflight)
		return false;
	for (int s = 0; s < CONN_STATES; s++)
		list_for_each (c, &h->conns.by_state[s], struct conn, link)
			if (!served(c))
				return false;
	return true;
}

unsigned http_connections(const struct http *h)
{
	return h->conns.n;
}

int64_t http_started_ms(const struct http *h)
{
	return h->started_ms;
}

/* Frees the server when it is closing and nothing of it is in the kernel's hands. */
static void bury(struct http *h)
{
	if (!h->closing || h->accept.inflight || h->ready.inflight || h->timer.inflight ||
	        h->pause.inflight || h->watches)
		return;
	list_remove(&h->hook.link);
	free(h);
}

void http_free(struct http *h)
{
	if (!h)
		return;
	http_stop_accepting(h);
	list_for_each (u, &h->upgraded, struct http_upgraded, link)
		http_upgraded_close(u);
	/* It must not be stopped with suspended connections. */
	for (int s = 0; s < CONN_STATES; s++)
		list_for_each (c, &h->conns.by_state[s], struct conn, link)
			if (c->request && c->request->suspended) {
				c->request->left = true;
				resume(c->request);
			}
	if (MHD_run(h->mhd) != MHD_YES)
		log_err("http: libmicrohttpd refuses to run");
	MHD_stop_daemon(h->mhd);
	h->closing = true;
	loop_cancel(h->loop, &h->ready);
	loop_cancel(h->loop, &h->timer);
	bury(h);
}

/* ---- what a handler sees ---- */

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
	return MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

static enum MHD_Result count_length(
        void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
	unsigned *n = ctx;
	(void)kind;
	(void)value;
	*n += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
	return MHD_YES;
}

/* libmicrohttpd goes by one of them; a proxy in front may go by another. */
bool http_one_length(const struct http_request *r)
{
	unsigned n = 0;
	(void)MHD_get_connection_values(r->mhd, MHD_HEADER_KIND, count_length, &n);
	return n + (http_header(r, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL) <= 1;
}

const char *http_body(const struct http_request *r, size_t *ret_len)
{
	*ret_len = r->body.len;
	return r->body.p ? r->body.p : "";
}

const struct auth_peer *http_peer(const struct http_request *r)
{
	return &r->conn->peer;
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
	return n < PARAMS_MAX ? r->params[n] : NULL;
}

int http_add_param(struct http_request *r, const char *encoded, size_t n)
{
	size_t i = 0;
	while (i < PARAMS_MAX && r->params[i])
		i++;
	assert(i < PARAMS_MAX); /* a route pattern with more is a mistake of ours */
	r->params[i] = percent_decode(encoded, n);
	return r->params[i] ? 0 : -EINVAL;
}

const char *http_query(struct http_request *r, const char *name)
{
	for (size_t i = 0; i < r->nqueries; i++)
		if (strcmp(r->queries[i].name, name) == 0)
			return r->queries[i].value;
	const char *raw = MHD_lookup_connection_value(r->mhd, MHD_GET_ARGUMENT_KIND, name);
	if (!raw)
		return NULL;
	char *value = percent_decode(raw, strlen(raw));
	r->queries = xrealloc(r->queries, r->nqueries + 1, sizeof(*r->queries));
	r->queries[r->nqueries++] = (struct pair){
	        .name = xstrdup(name),
	        .value = value ? value : xstrdup(""),
	};
	return r->queries[r->nqueries - 1].value;
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

struct query_walk {
	void (*each)(void *ctx, const char *name, const char *value);
	void *ctx;
};

static enum MHD_Result on_query(
        void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct query_walk *w = ctx;
	(void)kind;
	auto_free char *key = name ? percent_decode(name, strlen(name)) : NULL;
	auto_free char *text = value ? percent_decode(value, strlen(value)) : NULL;
	w->each(w->ctx, key, text);
	return MHD_YES;
}

void http_each_query(struct http_request *r,
        void (*each)(void *ctx, const char *name, const char *value), void *ctx)
{
	struct query_walk w = {each, ctx};
	(void)MHD_get_connection_values(r->mhd, MHD_GET_ARGUMENT_KIND, on_query, &w);
}

/* ---- answers ---- */

void http_add_header(struct http_request *r, const char *name, const char *value)
{
	assert(r->nheaders < HEADERS_MAX);
	r->headers[r->nheaders++] = (struct pair){.name = xstrdup(name), .value = xstrdup(value)};
}

static void answer(struct http_request *r, int status, struct MHD_Response *response)
{
	assert(!r->answered && response);
	r->answered = true;
	r->gone = NULL;
	r->status = status;
	r->response = response;
	resume(r);
}

void http_reply(struct http_request *r, int status, const char *type, struct buf *body)
{
	size_t n = body ? body->len : 0;
	char *p = body ? buf_take(body) : NULL;
	struct MHD_Response *response = MHD_create_response_from_buffer(
	        n, p, p ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
	if (type)
		http_add_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	answer(r, status, response);
}

void http_on_gone(struct http_request *r, void (*gone)(void *ctx), void *ctx)
{
	r->gone = gone;
	r->gone_ctx = ctx;
}

static ssize_t on_pull(void *ctx, uint64_t pos, char *p, size_t max)
{
	struct http_request *r = ctx;
	(void)pos;
	if (r->left || !r->source.gone)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	ssize_t n = r->source.pull(r->source.ctx, p, max);
	if (n == HTTP_WAIT)
		suspend(r);
	return n == HTTP_END     ? MHD_CONTENT_READER_END_OF_STREAM
	       : n == HTTP_ABORT ? MHD_CONTENT_READER_END_WITH_ERROR
	                         : n;
}

void http_stream(struct http_request *r, int status, const char *type, int64_t length,
        const struct http_source *source)
{
	assert(source->gone);
	r->source = *source;
	http_add_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	answer(r, status,
	        MHD_create_response_from_callback(length < 0 ? MHD_SIZE_UNKNOWN : (uint64_t)length,
	                STREAM_BLOCK, on_pull, r, NULL));
}

void http_wake(struct http_request *r)
{
	resume(r);
}

static void on_upgraded(void *ctx, struct MHD_Connection *mc, void *slot, const char *extra,
        size_t n, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
	struct http_request *r = ctx;
	(void)mc;
	(void)slot;
	struct http_upgraded *u = xnew(struct http_upgraded);
	u->http = r->http;
	u->handle = handle;
	list_append(&r->http->upgraded, &u->link);
	r->gone = NULL;
	if (r->watch.inflight)
		loop_cancel(r->http->loop, &r->watch);
	r->start(r->start_ctx, u, fd, extra, n);
}

void http_upgrade(struct http_request *r, const char *protocol,
        void (*start_fn)(void *ctx, struct http_upgraded *u, int fd, const void *p, size_t n),
        void *ctx)
{
	void (*gone)(void *) = r->gone;
	r->start = start_fn;
	r->start_ctx = ctx;
	http_add_header(r, MHD_HTTP_HEADER_UPGRADE, protocol);
	answer(r, MHD_HTTP_SWITCHING_PROTOCOLS, MHD_create_response_for_upgrade(on_upgraded, r));
	r->gone = gone; /* until the socket is handed over */
}

void http_upgraded_close(struct http_upgraded *u)
{
	struct http *h = u->http;
	list_remove(&u->link);
	MHD_upgrade_action(u->handle, MHD_UPGRADE_ACTION_CLOSE);
	free(u);
	touch(h);
}
