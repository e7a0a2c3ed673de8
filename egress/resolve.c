#include "egress/resolve.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "egress/address.h"

#include <ares.h>
#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
	HOSTS_MAX = 256 << 10, /* a hosts file used as a block list is not our business */
	CACHE = 256,           /* names in use by all jails; a page and its parts are a dozen */
	CACHE_MS = 60 * 1000,
	SOCKETS = 32,  /* c-ares opens two per server */
	TRY_MS = 3000, /* per server and try; three tries */
};

struct cached {
	char host[POLICY_HOST_MAX];
	int64_t until_ms;
	uint32_t n;
	uint8_t addresses[LOOKUP_ADDRESSES][16];
};

struct resolver {
	struct reactor *reactor; /* borrowed: process */
	ares_channel channel;
	struct timer timer;
	char *hosts; /* owned, NULL where the file cannot be read */
	struct resolver_socket {
		struct watch watch;
		struct resolver *resolver;
	} sockets[SOCKETS];
	struct cached cache[CACHE];
};

/* In c-ares' hands until its callback, whatever becomes of the lookup. */
struct query {
	struct resolver *resolver;
	struct lookup *lookup; /* NULL: cancelled */
	struct reach reach;
	bool returned; /* lookup_start has returned: the outcome goes to done() */
	bool finished;
	int status;
	char host[POLICY_HOST_MAX];
	struct err err;
};

static void rearm(struct resolver *r)
{
	struct timeval most = {.tv_sec = 3600}, tv;
	const struct timeval *in = ares_timeout(r->channel, &most, &tv);
	if (in->tv_sec < 3600)
		reactor_arm(r->reactor, &r->timer, in->tv_sec * 1000 + in->tv_usec / 1000 + 1);
	else
		reactor_disarm(&r->timer);
}

static void on_timer(struct timer *t)
{
	struct resolver *r = container_of(t, struct resolver, timer);
	ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	rearm(r);
}

static void on_socket(struct watch *w, uint32_t events)
{
	struct resolver_socket *s = container_of(w, struct resolver_socket, watch);
	struct resolver *r = s->resolver;
	int fd = w->fd;
	bool in = events & (EPOLLIN | EPOLLERR | EPOLLHUP), out = events & EPOLLOUT;
	ares_process_fd(r->channel, in ? fd : ARES_SOCKET_BAD, out ? fd : ARES_SOCKET_BAD);
	rearm(r);
}

static void on_socket_state(void *ctx, ares_socket_t fd, int readable, int writable)
{
	struct resolver *r = ctx;
	uint32_t events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u);
	struct resolver_socket *unused = NULL;
	for (size_t i = 0; i < SOCKETS; i++) {
		struct resolver_socket *s = &r->sockets[i];
		if (s->watch.fd == fd) {
			if (events)
				reactor_set(r->reactor, &s->watch, events);
			else
				reactor_unwatch(r->reactor, &s->watch);
			return;
		}
		if (s->watch.fd < 0)
			unused = s;
	}
	/* Without a watch the query runs into its timeout, which is an answer too. */
	if (events && unused && reactor_watch(r->reactor, &unused->watch, fd, events) < 0)
		unused->watch.fd = -1;
}

struct resolver *resolver_new(struct reactor *l, struct err *e)
{
	struct resolver *r = xnew(struct resolver);
	r->reactor = l;
	r->timer.fire = on_timer;
	for (size_t i = 0; i < SOCKETS; i++) {
		r->sockets[i].resolver = r;
		r->sockets[i].watch = (struct watch){.fd = -1, .ready = on_socket};
	}
	char lookups[] = "b"; /* DNS only: the hosts file is read here, once */
	struct ares_options o = {
	        .timeout = TRY_MS,
	        .tries = 3,
	        .lookups = lookups,
	        .sock_state_cb = on_socket_state,
	        .sock_state_cb_data = r,
	};
	int status = ares_library_init(ARES_LIB_INIT_ALL);
	if (status == ARES_SUCCESS)
		status = ares_init_options(&r->channel, &o,
		        ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
		                ARES_OPT_SOCK_STATE_CB);
	if (status != ARES_SUCCESS) {
		free(r);
		err_set(e, -EIO, "resolver: %s", ares_strerror(status));
		return NULL;
	}
	if (file_slurp("/etc/hosts", HOSTS_MAX, &r->hosts, NULL) < 0)
		r->hosts = NULL;
	return r;
}

void resolver_free(struct resolver *r)
{
	if (!r)
		return;
	ares_destroy(r->channel); /* calls every outstanding callback */
	reactor_disarm(&r->timer);
	for (size_t i = 0; i < SOCKETS; i++)
		reactor_unwatch(r->reactor, &r->sockets[i].watch);
	free(r->hosts);
	free(r);
}

/* ---- answers ---- */

/* Those that are not public first: they decide, and must not fall out of a long answer. */
static void add_address(struct cached *c, const struct sockaddr *a)
{
	uint8_t mapped[16];
	if (!address_mapped(a, mapped))
		return;
	if (c->n == LOOKUP_ADDRESSES && address_public(a))
		return;
	if (!address_public(a) && c->n) {
		uint32_t keep = c->n < LOOKUP_ADDRESSES ? c->n : LOOKUP_ADDRESSES - 1;
		memmove(c->addresses[1], c->addresses[0], keep * sizeof(mapped));
		memcpy(c->addresses[0], mapped, sizeof(mapped));
		c->n = keep + 1;
	} else {
		memcpy(c->addresses[c->n++], mapped, sizeof(mapped));
	}
}

static bool add_text(struct cached *c, const char *text)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
		add_address(c, (const struct sockaddr *)&in);
	else if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1)
		add_address(c, (const struct sockaddr *)&in6);
	else
		return false;
	return true;
}

static void begin(struct cached *c, const char *host)
{
	memset(c, 0, sizeof(*c));
	(void)str_copy(c->host, sizeof(c->host), host);
}

/* One line of the hosts file, which is changed: "address name [alias...] [# comment]". */
static void hosts_line(char *line, const char *host, struct cached *c)
{
	char *save = NULL;
	line[strcspn(line, "#")] = '\0';
	const char *address = strtok_r(line, " \t\r", &save), *name;
	while (address && (name = strtok_r(NULL, " \t\r", &save)))
		if (strcasecmp(name, host) == 0) {
			(void)add_text(c, address);
			return;
		}
}

static bool from_hosts(const struct resolver *r, const char *host, struct cached *c)
{
	begin(c, host);
	for (const char *p = r->hosts; p && *p;) {
		char line[1024];
		size_t n = strcspn(p, "\n");
		size_t keep = n < sizeof(line) ? n : sizeof(line) - 1;
		memcpy(line, p, keep);
		line[keep] = '\0';
		hosts_line(line, host, c);
		p += n + (p[n] == '\n');
	}
	return c->n != 0;
}

static int judge(const struct cached *c, const struct reach *reach, struct lookup *l, struct err *e)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct sockaddr_storage a;
		char text[ADDRESS_TEXT_MAX];
		(void)address_of(c->addresses[i], 0, &a);
		if (address_within(reach, (const struct sockaddr *)&a))
			continue;
		address_text((const struct sockaddr *)&a, text);
		return err_set(
		        e, -EACCES, "%.80s has the address %s, which is not public", c->host, text);
	}
	memcpy(l->addresses, c->addresses, sizeof(l->addresses));
	l->n = c->n;
	return 1;
}

void lookup_text(const struct lookup *l, char to[LOOKUP_TEXT])
{
	size_t at = 0;
	to[0] = '\0';
	for (uint32_t i = 0; i < l->n; i++) {
		struct sockaddr_storage a;
		char text[ADDRESS_TEXT_MAX];
		(void)address_of(l->addresses[i], 0, &a);
		address_text((const struct sockaddr *)&a, text);
		bool v6 = a.ss_family == AF_INET6;
		if (at + strlen(text) + 4 > LOOKUP_TEXT)
			return;
		at += (size_t)snprintf(to + at, LOOKUP_TEXT - at, "%s%s%s%s", at ? "," : "",
		        v6 ? "[" : "", text, v6 ? "]" : "");
	}
}

static struct cached *cache_slot(struct resolver *r, const char *host)
{
	struct cached *oldest = &r->cache[0];
	for (size_t i = 0; i < CACHE; i++) {
		if (strcmp(r->cache[i].host, host) == 0)
			return &r->cache[i];
		if (r->cache[i].until_ms < oldest->until_ms)
			oldest = &r->cache[i];
	}
	return oldest;
}

static int keep_answer(struct query *q, const struct ares_addrinfo *ai)
{
	struct cached *c = cache_slot(q->resolver, q->host);
	begin(c, q->host);
	int64_t ttl_ms = CACHE_MS;
	for (const struct ares_addrinfo_node *n = ai->nodes; n; n = n->ai_next) {
		if (n->ai_ttl * (int64_t)1000 < ttl_ms)
			ttl_ms = n->ai_ttl * (int64_t)1000;
		add_address(c, n->ai_addr);
	}
	c->until_ms = clock_mono_ms() + (ttl_ms < 0 ? 0 : ttl_ms);
	if (c->n == 0)
		return err_set(&q->err, -ENOENT, "%.80s has no address", q->host);
	return q->lookup ? judge(c, &q->reach, q->lookup, &q->err) : 1;
}

static void on_answer(void *ctx, int status, int timeouts, struct ares_addrinfo *ai)
{
	struct query *q = ctx;
	(void)timeouts;
	if (status == ARES_SUCCESS)
		q->status = keep_answer(q, ai);
	else
		q->status = err_set(&q->err, -EHOSTUNREACH, "cannot resolve %.80s: %s", q->host,
		        ares_strerror(status));
	if (ai)
		ares_freeaddrinfo(ai);
	q->finished = true;
	if (!q->returned)
		return; /* lookup_start hands the outcome over and frees */
	struct lookup *l = q->lookup;
	if (l) {
		l->query = NULL;
		l->done(l, q->status < 0 ? &q->err : NULL);
	}
	free(q);
}

int lookup_start(struct resolver *r, const struct origin *o, const struct reach *reach,
        struct lookup *l, struct err *e)
{
	struct cached c;
	l->query = NULL;
	begin(&c, o->host);
	if (o->literal ? add_text(&c, o->host) : from_hosts(r, o->host, &c))
		return judge(&c, reach, l, e);
	struct cached *known = cache_slot(r, o->host);
	if (strcmp(known->host, o->host) == 0 && known->n && clock_mono_ms() < known->until_ms)
		return judge(known, reach, l, e);

	struct query *q = xnew(struct query);
	q->resolver = r;
	q->lookup = l;
	q->reach = *reach;
	(void)str_copy(q->host, sizeof(q->host), o->host);
	struct ares_addrinfo_hints hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	ares_getaddrinfo(r->channel, o->host, NULL, &hints, on_answer, q);
	if (q->finished) {
		int status = q->status;
		if (status < 0)
			err_set(e, status, "%s", q->err.text);
		free(q);
		return status;
	}
	q->returned = true;
	l->query = q;
	rearm(r);
	return 0;
}

void lookup_cancel(struct lookup *l)
{
	if (l->query)
		l->query->lookup = NULL;
	l->query = NULL;
}
