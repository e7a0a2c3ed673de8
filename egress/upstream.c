#include "egress/upstream.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "egress/address.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

enum {
	CA_MAX = 4 << 20,     /* Debian's bundle is 220 KiB */
	HEAD_MAX = 256 << 10, /* response head; libcurl itself stops at 300 KiB */
	CONNECT_MS = 15000,   /* name is resolved already: TCP and TLS */
	IDLE_SHARED = 64,     /* kept for reuse, of all jails together */
	IDLE_OWN = 16,        /* of one */
	IDLE_REUSE_S = 50,    /* below the idle limit of common front ends (60 s): a request on
	                         a connection that is just being closed would fail */
	UPLOAD_CHUNK = 64 << 10,
};

struct upstream_socket {
	struct watch watch;
	struct corpse corpse;
	struct pool *pool;
};

struct pool {
	struct reactor *reactor; /* borrowed: process */
	CURLM *multi;            /* owned; NULL until there is a transfer */
	struct timer timer;
};

struct connections {
	struct pool pools[2]; /* public addresses only; any address */
	long idle;            /* of each */
};

struct upstream {
	struct reactor *reactor;   /* borrowed: process */
	struct connections shared; /* where the secret is ours */
	char *ca;                  /* owned: PEM */
	size_t ca_len;
};

struct transfer {
	struct pool *pool;
	CURL *easy;                 /* owned */
	struct curl_slist *headers; /* owned, wiped: carries the credential */
	struct curl_slist *resolve; /* owned */
	struct origin origin;
	struct reach reach;
	bool started; /* in the pool's multi handle */
	const struct transfer_ops *ops;
	void *ctx;
	int status;
	bool head_done;
	bool too_long;
	bool again;          /* asked the second time */
	bool switched;       /* to another protocol, unasked */
	bool dialled_closed; /* the guard at the socket refused */
	struct buf lines;
	char why[CURL_ERROR_SIZE];
};

/* ---- driving libcurl ---- */

/* A kept connection that ended while the request was on its way: libcurl asks again by itself where
 * it notices by reading, not where it does by writing. */
static bool again(struct transfer *t, CURLcode code)
{
	long fresh = 1;
	if (code != CURLE_SEND_ERROR || t->again || t->status || t->dialled_closed ||
	        curl_easy_getinfo(t->easy, CURLINFO_NUM_CONNECTS, &fresh) != CURLE_OK || fresh ||
	        !t->ops->rewind(t->ctx))
		return false;
	t->again = true;
	(void)curl_multi_remove_handle(t->pool->multi, t->easy);
	curl_easy_setopt(t->easy, CURLOPT_FRESH_CONNECT, 1L);
	t->started = curl_multi_add_handle(t->pool->multi, t->easy) == CURLM_OK;
	return t->started;
}

static void finish(struct transfer *t, CURLcode code)
{
	struct err err, *e = NULL;
	if (again(t, code))
		return;
	if (code != CURLE_OK) {
		e = &err;
		const char *why = t->why[0] ? t->why : curl_easy_strerror(code);
		if (t->dialled_closed)
			why = "the address is not public, or this host's own";
		else if (t->switched)
			why = "it switches to another protocol, unasked";
		else if (t->too_long)
			why = "the response head is too long";
		err_set(e, code == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -EHOSTUNREACH,
		        "%.60s: %.150s", t->origin.host, why);
	}
	t->ops->end(t->ctx, e);
}

static void reap(struct pool *p)
{
	CURLMsg *m;
	int left;
	while ((m = curl_multi_info_read(p->multi, &left))) {
		if (m->msg != CURLMSG_DONE)
			continue;
		CURLcode code = m->data.result; /* the message dies with its handle */
		char *ctx = NULL;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &ctx);
		finish((struct transfer *)(void *)ctx, code);
	}
}

static void act(struct pool *p, curl_socket_t fd, int mask)
{
	int running;
	(void)curl_multi_socket_action(p->multi, fd, mask, &running);
	reap(p);
}

static void on_ready(struct watch *w, uint32_t events)
{
	struct upstream_socket *s = container_of(w, struct upstream_socket, watch);
	int mask = (events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
	           (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
	           (events & EPOLLERR ? CURL_CSELECT_ERR : 0);
	act(s->pool, w->fd, mask);
}

static void bury_socket(struct corpse *c)
{
	free(container_of(c, struct upstream_socket, corpse));
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx)
{
	(void)easy;
	struct pool *p = ctx;
	struct upstream_socket *s = socket_ctx;
	if (what == CURL_POLL_REMOVE) {
		if (s) {
			reactor_unwatch(p->reactor, &s->watch);
			reactor_bury(p->reactor, &s->corpse);
			curl_multi_assign(p->multi, fd, NULL);
		}
		return 0;
	}
	uint32_t events =
	        (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
	if (s) {
		reactor_set(p->reactor, &s->watch, events);
		return 0;
	}
	s = xnew(struct upstream_socket);
	s->pool = p;
	s->corpse.bury = bury_socket;
	s->watch.ready = on_ready;
	if (reactor_watch(p->reactor, &s->watch, fd, events) < 0) {
		free(s);
		return -1;
	}
	curl_multi_assign(p->multi, fd, s);
	return 0;
}

static int on_timer_change(CURLM *multi, long ms, void *ctx)
{
	(void)multi;
	struct pool *p = ctx;
	if (ms < 0)
		reactor_disarm(&p->timer);
	else
		reactor_arm(p->reactor, &p->timer, ms);
	return 0;
}

static void on_timer(struct timer *t)
{
	act(container_of(t, struct pool, timer), CURL_SOCKET_TIMEOUT, 0);
}

/* ---- life ---- */

static void connections_init(struct connections *c, struct reactor *r, long idle)
{
	c->idle = idle;
	for (size_t i = 0; i < ARRAY_LEN(c->pools); i++)
		c->pools[i] = (struct pool){.reactor = r, .timer.fire = on_timer};
}

static void connections_done(struct connections *c)
{
	for (size_t i = 0; i < ARRAY_LEN(c->pools); i++) {
		curl_multi_cleanup(c->pools[i].multi);
		reactor_disarm(&c->pools[i].timer);
	}
}

static int pool_open(struct pool *p, long idle)
{
	if (p->multi)
		return 0;
	p->multi = curl_multi_init();
	if (!p->multi)
		return -ENOMEM;
	curl_multi_setopt(p->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(p->multi, CURLMOPT_SOCKETDATA, p);
	curl_multi_setopt(p->multi, CURLMOPT_TIMERFUNCTION, on_timer_change);
	curl_multi_setopt(p->multi, CURLMOPT_TIMERDATA, p);
	curl_multi_setopt(p->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
	curl_multi_setopt(p->multi, CURLMOPT_MAXCONNECTS, idle);
	return 0;
}

struct connections *connections_new(struct upstream *u)
{
	struct connections *c = xnew(struct connections);
	connections_init(c, u->reactor, IDLE_OWN);
	return c;
}

void connections_free(struct connections *c)
{
	if (c)
		connections_done(c);
	free(c);
}

struct upstream *upstream_new(struct reactor *r, const char *ca_file, struct err *e)
{
	struct upstream *u = xnew(struct upstream);
	u->reactor = r;
	connections_init(&u->shared, r, IDLE_SHARED);
	int status = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : -EIO;
	if (status < 0) {
		err_set(e, status, "libcurl does not start");
	} else {
		status = file_slurp(ca_file, CA_MAX, &u->ca, &u->ca_len);
		if (status < 0)
			err_set(e, status,
			        "certificates of authorities %s: %s (install ca-certificates)",
			        ca_file, strerror(-status));
	}
	if (status < 0) {
		upstream_free(u);
		return NULL;
	}
	return u;
}

void upstream_free(struct upstream *u)
{
	if (!u)
		return;
	connections_done(&u->shared);
	free(u->ca);
	free(u);
}

/* ---- callbacks ---- */

/* The last word on what is dialled: whatever a name resolved to, and whoever resolved it. */
static curl_socket_t on_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *a)
{
	struct transfer *t = ctx;
	if (purpose != CURLSOCKTYPE_IPCXN || !address_dialable(&t->reach, &a->addr)) {
		t->dialled_closed = true;
		return CURL_SOCKET_BAD;
	}
	return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

static int status_of(const char *p, size_t n)
{
	const char *sp = memchr(p, ' ', n);
	if (!sp || n - (size_t)(sp - p) < 4)
		return 502;
	int status = 0;
	for (int i = 1; i <= 3; i++) {
		if (sp[i] < '0' || sp[i] > '9')
			return 502;
		status = status * 10 + (sp[i] - '0');
	}
	return status;
}

static size_t on_header(char *p, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;
	n *= size;
	if (t->head_done)
		return n; /* trailer fields of a chunked body */
	if (n >= 5 && memcmp(p, "HTTP/", 5) == 0) {
		buf_clear(&t->lines);
		t->status = status_of(p, n);
	} else if (n && *p != '\r' && *p != '\n') {
		if (buf_put(&t->lines, p, n) < 0) {
			t->too_long = true;
			return 0;
		}
	} else if (t->status == 101) {
		t->switched = true;
		return 0;
	} else if (t->status >= 200) { /* 1xx heads are followed by another one */
		t->head_done = true;
		int r = t->ops->head(t->ctx, t->status, t->lines.p ? t->lines.p : "", t->lines.len);
		buf_done(&t->lines);
		t->too_long = r < 0;
		return r < 0 ? 0 : n;
	}
	return n;
}

static size_t on_body(char *p, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;
	ssize_t k = t->ops->body(t->ctx, p, n * size);
	if (k == TRANSFER_PAUSE)
		return CURL_WRITEFUNC_PAUSE;
	/* Any other number than n stops the transfer; so it must differ when n is 0. */
	return k < 0 ? n * size + 1 : n * size;
}

static size_t on_pull(char *p, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;
	ssize_t k = t->ops->pull(t->ctx, p, n * size);
	if (k == TRANSFER_PAUSE)
		return CURL_READFUNC_PAUSE;
	return k < 0 ? CURL_READFUNC_ABORT : (size_t)k;
}

static int on_seek(void *ctx, curl_off_t at, int whence)
{
	struct transfer *t = ctx;
	return at == 0 && whence == SEEK_SET && t->ops->rewind(t->ctx) ? CURL_SEEKFUNC_OK
	                                                               : CURL_SEEKFUNC_FAIL;
}

/* ---- transfers ---- */

static void set_limits(struct upstream *u, struct transfer *t)
{
	CURL *c = t->easy;
	struct curl_blob ca = {.data = u->ca, .len = u->ca_len, .flags = CURL_BLOB_NOCOPY};
	curl_easy_setopt(c, CURLOPT_CAINFO_BLOB, &ca);
	curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L);
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L);
	curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, t->origin.tls ? "https" : "http");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_VERBOSE, 0L);
	curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(c, CURLOPT_MAXAGE_CONN, (long)IDLE_REUSE_S);
	curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, on_open);
	curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, t);
}

static void set_callbacks(struct transfer *t)
{
	CURL *c = t->easy;
	curl_easy_setopt(c, CURLOPT_PRIVATE, t);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, t->why);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(c, CURLOPT_READFUNCTION, on_pull);
	curl_easy_setopt(c, CURLOPT_READDATA, t);
	curl_easy_setopt(c, CURLOPT_SEEKFUNCTION, on_seek);
	curl_easy_setopt(c, CURLOPT_SEEKDATA, t);
}

static void set_method(struct transfer *t, const struct transfer_spec *spec)
{
	char method[HTTP_METHOD_MAX];
	snprintf(method, sizeof(method), "%.*s", (int)spec->method.n, spec->method.p);
	if (spec->body_bytes != TRANSFER_NO_BODY) {
		curl_easy_setopt(t->easy, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(t->easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_CHUNK);
		curl_easy_setopt(t->easy, CURLOPT_INFILESIZE_LARGE,
		        (curl_off_t)(spec->body_bytes == TRANSFER_CHUNKED ? -1 : spec->body_bytes));
	} else if (http_is(spec->method, "HEAD")) {
		curl_easy_setopt(t->easy, CURLOPT_NOBODY, 1L);
		/* A body sent in answer to HEAD would be taken for the next response, and the next
		 * request on that connection may be another jail's. */
		curl_easy_setopt(t->easy, CURLOPT_FORBID_REUSE, 1L);
	}
	curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, method);
}

/* What libcurl would add of its own is taken out ("Name:" without value does that). */
static int no_defaults(struct transfer *t)
{
	static const char *const own[] = {"Expect:", "Accept:", "User-Agent:"};
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		struct curl_slist *list = curl_slist_append(t->headers, own[i]);
		if (!list)
			return -ENOMEM;
		t->headers = list;
	}
	return 0;
}

struct transfer *transfer_new(struct upstream *u, const struct transfer_spec *spec, struct err *e)
{
	struct transfer *t = xnew(struct transfer);
	auto_buf struct buf url = BUF_INIT(HTTP_HEAD_MAX + 2 * POLICY_PATH_MAX);
	struct connections *c = spec->own ? spec->own : &u->shared;
	t->pool = &c->pools[spec->reach.any || spec->reach.n ? 1 : 0];
	t->origin = *spec->origin;
	t->reach = spec->reach;
	t->ops = spec->ops;
	t->ctx = spec->ctx;
	t->lines = (struct buf)BUF_INIT(HEAD_MAX);
	t->easy = curl_easy_init();
	int r = pool_open(t->pool, c->idle);
	if (r == 0)
		r = t->easy ? origin_url(&t->origin, spec->target.p, spec->target.n, &url)
		            : -ENOMEM;
	if (r < 0) {
		err_set(e, r, "the request cannot be prepared: %s", strerror(-r));
		transfer_free(t);
		return NULL;
	}
	set_limits(u, t);
	set_callbacks(t);
	set_method(t, spec);
	curl_easy_setopt(t->easy, CURLOPT_URL, url.p);
	curl_easy_setopt(t->easy, CURLOPT_FRESH_CONNECT, spec->fresh || spec->reach.n ? 1L : 0L);
	if (spec->reach.n)
		curl_easy_setopt(t->easy, CURLOPT_FORBID_REUSE, 1L);
	return t;
}

int transfer_header(
        struct transfer *t, struct http_text name, const char *prefix, struct http_text value)
{
	/* A header with a semicolon instead of the colon is libcurl's way to send an empty one. */
	bool empty = value.n == 0 && !*prefix;
	auto_buf struct buf line = BUF_INIT(HTTP_HEAD_MAX);
	buf_put(&line, name.p, name.n);
	buf_puts(&line, empty ? ";" : ": ");
	buf_puts(&line, prefix);
	buf_put(&line, value.p, value.n);
	if (line.failed)
		return line.failed;
	struct curl_slist *list = curl_slist_append(t->headers, line.p);
	explicit_bzero(line.p, line.len);
	if (!list)
		return -ENOMEM;
	t->headers = list;
	return 0;
}

static int pin(struct transfer *t, const struct lookup *l)
{
	char addresses[LOOKUP_TEXT];
	if (t->origin.literal)
		return 0;
	lookup_text(l, addresses);
	/* '+': may age out of libcurl's cache; every transfer brings its own anyway. */
	auto_free char *entry = xasprintf("+%s:%u:%s", t->origin.host, t->origin.port, addresses);
	t->resolve = curl_slist_append(NULL, entry);
	if (!t->resolve)
		return -ENOMEM;
	curl_easy_setopt(t->easy, CURLOPT_RESOLVE, t->resolve);
	return 0;
}

int transfer_start(struct transfer *t, const struct lookup *addresses, struct err *e)
{
	int r = pin(t, addresses);
	if (r == 0)
		r = no_defaults(t);
	if (r < 0)
		return err_set(e, r, "out of memory");
	curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
	CURLMcode code = curl_multi_add_handle(t->pool->multi, t->easy);
	if (code != CURLM_OK)
		return err_set(e, -EIO, "libcurl: %s", curl_multi_strerror(code));
	t->started = true;
	return 0;
}

void transfer_resume(struct transfer *t)
{
	if (t->started)
		(void)curl_easy_pause(t->easy, CURLPAUSE_CONT);
}

bool transfer_narrow(struct transfer *t, const struct reach *reach)
{
	curl_socket_t fd = CURL_SOCKET_BAD;
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);
	t->reach = *reach; /* for what is dialled from now on */
	if (curl_easy_getinfo(t->easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK ||
	        fd == CURL_SOCKET_BAD || getpeername(fd, (struct sockaddr *)&a, &len) < 0)
		return true;
	return address_within(reach, (const struct sockaddr *)&a);
}

void transfer_bytes(const struct transfer *t, uint64_t *ret_in, uint64_t *ret_out)
{
	curl_off_t up = 0, down = 0;
	long head_in = 0, head_out = 0;
	curl_easy_getinfo(t->easy, CURLINFO_SIZE_DOWNLOAD_T, &down);
	curl_easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &up);
	curl_easy_getinfo(t->easy, CURLINFO_HEADER_SIZE, &head_in);
	curl_easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &head_out);
	*ret_in = (uint64_t)down + (uint64_t)head_in;
	*ret_out = (uint64_t)up + (uint64_t)head_out;
}

int64_t transfer_retry_after_ms(const struct transfer *t)
{
	curl_off_t seconds = 0;
	curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &seconds);
	return seconds > 0 && seconds < INT32_MAX ? (int64_t)seconds * 1000 : 0;
}

void transfer_free(struct transfer *t)
{
	if (!t)
		return;
	if (t->started)
		(void)curl_multi_remove_handle(t->pool->multi, t->easy);
	if (t->easy)
		curl_easy_cleanup(t->easy);
	for (struct curl_slist *h = t->headers; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl_slist_free_all(t->headers);
	curl_slist_free_all(t->resolve);
	buf_done(&t->lines);
	free(t);
}
