#include "client/remote.h"

#include "base/bridge.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/secure.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECT_MS = 10000, HANDSHAKE_MS = 10000 };

/* ---- where ---- */

static int not_a_url(const char *url, struct err *e)
{
	return err_set(e, -EINVAL,
	        "--url '%.100s' is not like https://HOST[:PORT] or http://127.0.0.1:PORT", url);
}

static bool all_digits(const char *p)
{
	return *p && strspn(p, "0123456789") == strlen(p) && strlen(p) <= 5;
}

int remote_parse(const char *url, struct remote_place *ret, struct err *e)
{
	struct remote_place x = {.tls = strncmp(url, "https://", 8) == 0};
	if (!x.tls && strncmp(url, "http://", 7) != 0)
		return not_a_url(url, e);
	const char *p = url + (x.tls ? 8 : 7);
	bool v6 = *p == '[';
	size_t n = v6 ? strcspn(p, "]") : strcspn(p, ":/");
	if (v6 && p[n] != ']')
		return not_a_url(url, e);
	const char *host = p + v6, *rest = p + n + v6;
	n -= v6;
	if (n == 0 || n >= sizeof(x.host) || (!x.tls && *rest != ':'))
		return not_a_url(url, e);
	memcpy(x.host, host, n);
	auto_free char *port = xstrdup(*rest == ':' ? rest + 1 : "443");
	port[strcspn(port, "/")] = '\0'; /* only a slash may follow */
	const char *path = strchr(rest, '/');
	if ((*rest && *rest != ':' && *rest != '/') || !all_digits(port) ||
	        (path && strcmp(path, "/") != 0))
		return not_a_url(url, e);
	(void)str_copy(x.port, sizeof(x.port), port);
	bool here = (strncmp(x.host, "127.", 4) == 0 && !x.host[strspn(x.host, "0123456789.")]) ||
	            strcmp(x.host, "::1") == 0 || strcmp(x.host, "localhost") == 0;
	if (!x.tls && !here)
		return err_set(e, -EINVAL,
		        "--url %.100s: plain http would show the key to whoever is on the way; use "
		        "https",
		        url);
	*ret = x;
	return 0;
}

/* ---- connecting ---- */

static int finish_connect(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int code = 0, n;
	socklen_t len = sizeof(code);
	do
		n = poll(&p, 1, CONNECT_MS);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return -ETIMEDOUT;
	if (n < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len) < 0)
		return -errno;
	return -code;
}

static int connect_one(const struct addrinfo *a)
{
	const int on = 1;
	auto_close int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* only faster */
	int r = connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : -errno;
	if (r == -EINPROGRESS)
		r = finish_connect(fd);
	return r < 0 ? r : take_fd(fd);
}

static int connect_any(const struct remote_place *x, struct err *e)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *all = NULL;
	int r = getaddrinfo(x->host, x->port, &hints, &all);
	if (r != 0)
		return err_set(e, -EHOSTUNREACH, "%s: %s", x->host, gai_strerror(r));
	r = -EHOSTUNREACH;
	for (const struct addrinfo *a = all; a && r < 0; a = a->ai_next)
		r = connect_one(a);
	freeaddrinfo(all);
	return r < 0 ? err_set(e, r, "no daemon answers on %s port %s: %s", x->host, x->port,
	                       strerror(-r))
	             : r;
}

/* ---- TLS, in a thread of its own ---- */

/* All owned by the thread once it runs. */
struct speaker {
	int remote, local; /* owned */
	int told;          /* owned: how the greeting went, as struct err */
	struct remote_place place;
	char *ca_file; /* owned, or NULL */
};

static void speaker_free(struct speaker *k)
{
	fd_close(k->remote);
	fd_close(k->local);
	fd_close(k->told);
	free(k->ca_file);
	free(k);
}

static int shake(struct secure *s, int fd, struct err *e)
{
	int64_t until = clock_mono_ms() + HANDSHAKE_MS;
	int r;
	while ((r = secure_handshake(s, e)) == 0) {
		struct pollfd p = {.fd = fd, .events = secure_wants_write(s) ? POLLOUT : POLLIN};
		int64_t left = until - clock_mono_ms();
		if (left <= 0)
			return err_set(e, -ETIMEDOUT, "TLS: no answer");
		(void)poll(&p, 1, (int)left);
	}
	return r;
}

static void pass_on(struct bridge *b)
{
	while (bridge_move(b)) {
		struct pollfd p[2] = {{.fd = b->remote}, {.fd = b->local}};
		bridge_events(b, &p[0].events, &p[1].events);
		/* One that is waited for nothing would report its hang-up without end. */
		for (int i = 0; i < 2; i++)
			if (!p[i].events)
				p[i].fd = -1;
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return;
	}
}

static void *speak(void *arg)
{
	struct speaker *k = arg;
	struct err e = {0};
	struct secure_service *service = secure_client(k->ca_file, &e);
	struct secure *s = service ? secure_new(service, k->remote, k->place.host, &e) : NULL;
	int r = s ? shake(s, k->remote, &e) : e.code;
	if (r > 0)
		e.code = 0;
	int w = fd_write_all(k->told, (const char *)&e, sizeof(e));
	fd_close(take_fd(k->told));
	if (w == 0 && r > 0) {
		struct bridge b = {.remote = k->remote, .local = k->local, .secure = s};
		pass_on(&b);
	}
	secure_free(s);
	secure_service_free(service);
	speaker_free(k);
	return NULL;
}

/* Signals are for the threads of whoever uses us; SIGPIPE for none. */
static int start(struct speaker *k, struct err *e)
{
	sigset_t all, before;
	pthread_t thread;
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before); /* fails for no valid first argument */
	int r = pthread_create(&thread, NULL, speak, k);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0)
		return err_set(e, -r, "a thread for TLS: %s", strerror(r));
	(void)pthread_detach(thread);
	return 0;
}

/* `remote` is taken in any case. */
static int spawn(int remote, const struct remote_place *x, const char *ca_file, struct err *e)
{
	int ends[2], pipe[2];
	struct speaker *k = xnew(struct speaker);
	*k = (struct speaker){.remote = remote, .local = -1, .told = -1, .place = *x};
	k->ca_file = ca_file ? xstrdup(ca_file) : NULL;
	auto_close int ours = -1;
	auto_close int from = -1;
	int r = 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		r = err_errno(e, "socketpair");
	} else {
		ours = ends[0];
		k->local = ends[1];
		if (fd_set_nonblock(k->local, 1) < 0 || pipe2(pipe, O_CLOEXEC) < 0) {
			r = err_errno(e, "pipe");
		} else {
			from = pipe[0];
			k->told = pipe[1];
			r = start(k, e);
		}
	}
	if (r < 0) {
		speaker_free(k);
		return r;
	}
	struct err told;
	ssize_t n = fd_read_full(from, (char *)&told, sizeof(told));
	if (n != (ssize_t)sizeof(told))
		return err_set(e, -EIO, "the thread that speaks TLS has ended");
	if (told.code < 0)
		return err_set(e, told.code, "%s port %s: %s", x->host, x->port, told.text);
	return take_fd(ours);
}

int remote_open(const char *url, const char *ca_file, struct err *e)
{
	struct remote_place x;
	int r = remote_parse(url, &x, e);
	if (r < 0)
		return r;
	auto_close int fd = connect_any(&x, e);
	if (fd < 0)
		return fd;
	if (x.tls)
		return spawn(take_fd(fd), &x, ca_file, e);
	r = fd_set_nonblock(fd, 0);
	return r < 0 ? err_set(e, r, "%s", strerror(-r)) : take_fd(fd);
}
