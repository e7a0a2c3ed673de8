/*
 * Theory of operation.  One thread and poll: listeners, the question whether the
 * jail still lives, and for each connection first the daemon's answer, then two
 * lanes.  A lane waits to read while its buffer is empty, else to write.
 */
#include "abctl/forward.h"
#include "abctl/fail.h"
#include "abctl/query.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/mem.h"
#include "proto/ports.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	LANE_BYTES = 16 << 10,
	ASK_MS = 1000, /* how late the end of a jail may be noticed */
	BACKLOG = 64,
};

struct lane {
	int from, to; /* borrowed: of the pair */
	bool over;
	size_t len, at; /* bytes in buf, those of them that are written */
	char buf[LANE_BYTES];
};

struct pair {
	struct list link;       /* in forward.pairs */
	struct client *opening; /* owned until the daemon has answered */
	int in, out;            /* owned: the local side, out may be in */
	int sock;               /* owned: to the daemon, -1 until it has answered */
	struct lane up, down;
	struct pollfd *polled[3]; /* of this turn */
};

struct forward {
	const struct cli *cli;
	const char *session;
	const struct forward_spec *specs;
	int listeners[FORWARD_MAX];
	int nlisteners;
	int64_t jail;
	struct client *asking; /* owned, or NULL: whether the jail lives */
	struct list pairs;     /* pair.link */
	unsigned npairs;
	bool over; /* the jail has ended: what is open goes on to its end */
	int code;  /* of the last refusal */
};

/* ---- what is asked for ---- */

static bool number(const char *text, size_t n, unsigned least, unsigned *ret)
{
	unsigned v = 0;
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9' || i >= 5)
			return false;
		v = v * 10 + (unsigned)(text[i] - '0');
	}
	*ret = v;
	return n > 0 && v >= least && v <= 65535;
}

int forward_parse(const char *text, struct forward_spec *ret, struct err *e)
{
	struct forward_spec s = {.bind = "127.0.0.1"};
	struct in6_addr any;
	const char *last = strrchr(text, ':'), *port = last ? last + 1 : text;
	size_t n = last ? (size_t)(last - text) : 0;
	bool fine = number(port, strlen(port), 1, &s.port);
	s.local = s.port;
	if (fine && last) {
		const char *colon = memrchr(text, ':', n), *local = colon ? colon + 1 : text;
		size_t nbind = colon ? (size_t)(colon - text) : 0;
		fine = number(local, n - (size_t)(local - text), 0, &s.local);
		bool brackets = nbind > 2 && text[0] == '[' && text[nbind - 1] == ']';
		const char *bind = brackets ? text + 1 : text;
		nbind -= brackets ? 2 : 0;
		fine = fine && nbind < sizeof(s.bind);
		if (fine && colon) {
			memcpy(s.bind, bind, nbind);
			s.bind[nbind] = '\0';
			fine = inet_pton(brackets ? AF_INET6 : AF_INET, s.bind, &any) == 1;
		}
	}
	if (!fine)
		return err_set(e, -EINVAL,
		        "'%.80s' is not [ADDRESS:][LOCAL:]PORT, as in 3000, 8080:3000 or "
		        "0.0.0.0:8080:3000 ([::1]:8080:3000)",
		        text);
	*ret = s;
	return 0;
}

static struct client *open_port(const struct forward *f, unsigned port, struct err *e)
{
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/sessions/");
	url_encode(&path, f->session);
	buf_printf(&path, "/ports/%u", port);
	struct client_request req = {.method = "POST", .path = path.p, .upgrade = PORT_UPGRADE};
	return client_open(&f->cli->peer, &req, e);
}

/* ---- lanes ---- */

static void lane_end(struct lane *l)
{
	if (l->over)
		return;
	l->over = true;
	if (shutdown(l->to, SHUT_WR) < 0 && errno == ENOTSOCK)
		(void)close(l->to); /* stdout: a pipe has no other way to say so */
}

static short lane_wants(const struct lane *l, int fd)
{
	if (l->over)
		return 0;
	if (l->at < l->len)
		return fd == l->to ? POLLOUT : 0;
	return fd == l->from ? POLLIN : 0;
}

static void lane_go(struct lane *l, bool readable, bool writable)
{
	if (l->over)
		return;
	if (l->at == l->len && readable) {
		ssize_t n = read(l->from, l->buf, sizeof(l->buf));
		if (n > 0) {
			l->at = 0;
			l->len = (size_t)n;
			writable = true; /* most often it is; else EAGAIN says so */
		} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
			lane_end(l);
		}
	}
	if (l->at < l->len && writable && !l->over) {
		ssize_t n = write(l->to, l->buf + l->at, l->len - l->at);
		if (n > 0)
			l->at += (size_t)n;
		else if (n < 0 && errno != EAGAIN && errno != EINTR)
			lane_end(l);
	}
}

/* ---- pairs ---- */

static struct pair *pair_new(struct forward *f, int in, int out, unsigned port)
{
	struct err e;
	struct client *c = open_port(f, port, &e);
	if (!c) {
		f->code = query_failed(&e);
		return NULL;
	}
	struct pair *p = xnew(struct pair);
	p->opening = c;
	p->in = in;
	p->out = out;
	p->sock = -1;
	list_append(&f->pairs, &p->link);
	f->npairs++;
	return p;
}

static void pair_free(struct forward *f, struct pair *p)
{
	list_remove(&p->link);
	f->npairs--;
	client_free(p->opening);
	fd_close(p->sock);
	if (p->out != p->in)
		fd_close(p->out);
	fd_close(p->in);
	free(p);
}

/* The daemon's answer; false: there is none to be had. */
static bool pair_answered(struct forward *f, struct pair *p)
{
	struct err e;
	int r = client_pump(p->opening, &e);
	if (r >= 0 && !client_has_head(p->opening))
		return true;
	int status = r < 0 ? r : client_status(p->opening, &e);
	if (status != 101) {
		f->code = status < 0 ? query_failed(&e) : query_refused(p->opening);
		return false;
	}
	auto_buf struct buf rest = BUF_INIT(LANE_BYTES);
	p->sock = client_upgraded(p->opening, &rest);
	client_free(p->opening);
	p->opening = NULL;
	if (fd_set_nonblock(p->sock, 1) < 0 || rest.failed)
		return false;
	p->up.from = p->in;
	p->up.to = p->down.from = p->sock;
	p->down.to = p->out;
	memcpy(p->down.buf, rest.p ? rest.p : "", rest.len);
	p->down.len = rest.len;
	return true;
}

static bool ready(const struct pollfd *p, short events)
{
	return p && (p->revents & (events | POLLHUP | POLLERR | POLLNVAL));
}

/* False: it is at its end. */
static bool pair_go(struct forward *f, struct pair *p)
{
	if (p->opening)
		return !ready(p->polled[2], POLLIN) || pair_answered(f, p);
	lane_go(&p->up, ready(p->polled[0], POLLIN), ready(p->polled[2], POLLOUT));
	lane_go(&p->down, ready(p->polled[2], POLLIN), ready(p->polled[1], POLLOUT));
	return !p->up.over || !p->down.over;
}

static struct pollfd *want(struct pollfd **at, int fd, short events)
{
	struct pollfd *p = (*at)++;
	/* A descriptor that nothing is wanted of would wake us with its end, again and again. */
	*p = (struct pollfd){.fd = events ? fd : -1, .events = events};
	return p;
}

static void pair_wants(struct pair *p, struct pollfd **at)
{
	if (p->opening) {
		p->polled[0] = p->polled[1] = NULL;
		p->polled[2] = want(at, client_fd(p->opening), POLLIN);
		return;
	}
	p->polled[0] = want(at, p->in, lane_wants(&p->up, p->in));
	p->polled[1] = want(at, p->out, lane_wants(&p->down, p->out));
	p->polled[2] = want(
	        at, p->sock, (short)(lane_wants(&p->up, p->sock) | lane_wants(&p->down, p->sock)));
}

/* ---- the jail ---- */

static struct client *ask(const struct forward *f, struct err *e)
{
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/sessions/");
	url_encode(&path, f->session);
	struct client_request req = {.method = "GET", .path = path.p};
	return client_open(&f->cli->peer, &req, e);
}

/* Nothing that would not be said of the next connection is said here: a daemon that is just being
 * replaced answers the next time. */
static void answered(struct forward *f)
{
	struct err e;
	int r = client_pump(f->asking, &e);
	if (r > 0)
		return;
	const char *text;
	size_t n;
	bool fine = r == 0 && client_status(f->asking, &e) == 200 &&
	            client_body(f->asking, &text, &n, &e) == 0;
	auto_json struct json *j = fine ? json_parse(text, n, NULL) : NULL;
	f->over = j && json_int(j, "jail", 0) != f->jail;
	client_free(f->asking);
	f->asking = NULL;
}

static void look(struct forward *f)
{
	struct err e;
	if (f->asking || f->over)
		return;
	f->asking = ask(f, &e);
	if (!f->asking && e.code != -EAGAIN) {
		f->code = query_failed(&e);
		f->over = true;
	}
}

/* ---- the loop ---- */

static void accept_one(struct forward *f, int i)
{
	int on = 1;
	auto_close int fd = accept4(f->listeners[i], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		return; /* it left again */
	if (pair_new(f, fd, fd, f->specs[i].port))
		(void)take_fd(fd);
}

/* One turn; -errno where poll itself fails. */
static int turn(struct forward *f, int timeout_ms)
{
	struct pollfd p[FORWARD_MAX + 1 + 3 * LIMIT_INBOUND], *at = p;
	bool room = f->npairs < LIMIT_INBOUND && !f->over;
	for (int i = 0; i < f->nlisteners; i++)
		(void)want(&at, f->listeners[i], room ? POLLIN : 0);
	struct pollfd *asked = want(&at, f->asking ? client_fd(f->asking) : -1, POLLIN);
	list_for_each (x, &f->pairs, struct pair, link)
		pair_wants(x, &at);
	int n = poll(p, (nfds_t)(at - p), timeout_ms);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (f->asking && asked->revents)
		answered(f);
	list_for_each (x, &f->pairs, struct pair, link)
		if (!pair_go(f, x))
			pair_free(f, x);
	for (int i = 0; i < f->nlisteners; i++)
		if (p[i].revents & POLLIN && f->npairs < LIMIT_INBOUND)
			accept_one(f, i);
	return n == 0;
}

static int listen_at(const struct forward_spec *s, unsigned *ret_port, struct err *e)
{
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)s->local)};
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->local)};
	bool v6 = inet_pton(AF_INET6, s->bind, &a6.sin6_addr) == 1;
	if (!v6 && inet_pton(AF_INET, s->bind, &a4.sin_addr) != 1)
		return err_set(e, -EINVAL, "'%s' is no address", s->bind);
	struct sockaddr *a = v6 ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4;
	socklen_t n = v6 ? sizeof(a6) : sizeof(a4);
	int on = 1;
	auto_close int fd =
	        socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	        bind(fd, a, n) < 0 || listen(fd, BACKLOG) < 0 || getsockname(fd, a, &n) < 0)
		return err_errno(e, "listening on %s port %u", s->bind, s->local);
	*ret_port = ntohs(v6 ? a6.sin6_port : a4.sin_port);
	return take_fd(fd);
}

/* Has the session a jail, and lets its policy clients in there? */
static int check(struct forward *f, int n)
{
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX), list = BUF_INIT(256);
	buf_puts(&path, "/v1/sessions/");
	url_encode(&path, f->session);
	auto_json struct json *j = NULL;
	int r = query_get(f->cli, path.p, &j);
	if (r)
		return r;
	f->jail = json_int(j, "jail", 0);
	if (!f->jail)
		return fail_system("session %s has no jail now: nothing runs in it", f->session);
	for (int i = 0; i < n; i++) {
		bool there = false;
		buf_clear(&list);
		for (const struct json *x = json_first(json_get(j, "ports")); x; x = json_next(x)) {
			double port = 0;
			(void)json_number(x, &port); /* 0 is none */
			buf_printf(&list, "%s%.0f", list.len ? ", " : "", port);
			there |= port == f->specs[i].port;
		}
		if (!there)
			return fail_usage(
			        "port %u of the jail is not to be reached: its policy has `ports: "
			        "[%s]`; remedy: root adds it there and reloads",
			        f->specs[i].port, list.p ? list.p : "");
	}
	return 0;
}

static void say_where(const struct forward *f, int i, unsigned local)
{
	const struct forward_spec *s = &f->specs[i];
	bool v6 = strchr(s->bind, ':') != NULL;
	if (f->cli->json)
		printf("{\"address\":\"%s\",\"local\":%u,\"port\":%u}\n", s->bind, local, s->port);
	else
		printf("%s%s%s:%u -> port %u of %s\n", v6 ? "[" : "", s->bind, v6 ? "]" : "", local,
		        s->port, f->session);
	fflush(stdout);
}

static void done(struct forward *f)
{
	list_for_each (x, &f->pairs, struct pair, link)
		pair_free(f, x);
	for (int i = 0; i < f->nlisteners; i++)
		fd_close(f->listeners[i]);
	client_free(f->asking);
}

int forward_listen(
        const struct cli *cli, const char *session, const struct forward_spec *specs, int n)
{
	struct err e;
	struct forward f = {.cli = cli, .session = session, .specs = specs};
	list_init(&f.pairs);
	signal(SIGPIPE, SIG_IGN);
	int r = check(&f, n);
	while (r == 0 && f.nlisteners < n) {
		unsigned local = 0;
		int fd = listen_at(&specs[f.nlisteners], &local, &e);
		if (fd < 0) {
			r = fail_system("%s", e.text);
			break;
		}
		f.listeners[f.nlisteners] = fd;
		say_where(&f, f.nlisteners++, local);
	}
	while (r == 0 && !(f.over && f.npairs == 0)) {
		int t = turn(&f, ASK_MS);
		if (t < 0)
			r = fail_system("poll: %s", strerror(-t));
		look(&f);
	}
	done(&f);
	if (r == 0 && f.over && f.code != EXIT_SYSTEM)
		fail_note("the jail has ended");
	return r ? r : f.code == EXIT_SYSTEM ? EXIT_SYSTEM : EXIT_DONE;
}

int forward_stdio(const struct cli *cli, const char *session, unsigned port)
{
	struct forward f = {.cli = cli, .session = session};
	list_init(&f.pairs);
	signal(SIGPIPE, SIG_IGN);
	struct pair *p = pair_new(&f, STDIN_FILENO, STDOUT_FILENO, port);
	int t = 0;
	while (p && f.npairs > 0 && t >= 0) {
		t = turn(&f, -1);
		/* The server has said all: what stdin still has is for nobody. */
		if (f.npairs > 0 && p->down.over)
			break;
	}
	done(&f);
	return t < 0 ? fail_system("poll: %s", strerror(-t)) : f.code;
}
