#include "listener/clients.h"

#include "base/bridge.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/secure.h"
#include "proto/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum {
	HANDSHAKE_MS = 10000,
	/* From the end of what we say to that of what the client says. */
	LINGER_MS = 5000,
	/* A client that takes no byte and answers no probe for so long is gone. */
	UNACKED_MS = 120000,
	KEEPALIVE_S = 60,
};

struct client {
	struct list link; /* in clients.open, timed, ready or dead */
	struct clients *clients;
	struct watched remote, local;
	struct bridge bridge;
	bool ready;        /* through the handshake */
	bool open;         /* and with the supervisor */
	int64_t until_ms;  /* 0: no limit */
	uint32_t asked[2]; /* of epoll, for remote and local */
	char from[LISTEN_TEXT];
};

void clients_init(struct clients *c, int epoll, int outlet)
{
	*c = (struct clients){.epoll = epoll, .outlet = outlet};
	list_init(&c->open);
	list_init(&c->timed);
	list_init(&c->ready);
	struct rlimit r;
	c->most = CLIENTS_MAX;
	/* Each has two descriptors, and a third for a moment. */
	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_max / 3 < CLIENTS_MAX)
		c->most = (unsigned)(r.rlim_max / 3);
	list_init(&c->dead);
}

/* How long it may go on as it is; 0: as long as it likes. */
static void allow(struct client *x, int64_t ms)
{
	x->until_ms = ms ? clock_mono_ms() + ms : 0;
	list_remove(&x->link);
	list_append(ms ? &x->clients->timed : &x->clients->open, &x->link);
}

static void end(struct client *x)
{
	if (x->bridge.remote < 0)
		return;
	/* Closing takes them out of the epoll set: no other descriptor is of the same socket, but
	 * for the moment in which one is being given away. */
	secure_free(take(x->bridge.secure));
	fd_close(x->bridge.remote);
	fd_close(x->bridge.local);
	x->bridge.remote = x->bridge.local = -1;
	x->clients->n--;
	list_remove(&x->link);
	list_append(&x->clients->dead, &x->link);
}

void clients_bury(struct clients *c)
{
	list_for_each (x, &c->dead, struct client, link) {
		list_remove(&x->link);
		free(x);
	}
}

static uint32_t epoll_of(short events)
{
	return (events & POLLIN ? EPOLLIN : 0u) | (events & POLLOUT ? EPOLLOUT : 0u);
}

static bool ask(struct client *x, int fd, struct watched *w, int at, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = w};
	if (x->asked[at] == events)
		return true;
	x->asked[at] = events;
	return epoll_ctl(x->clients->epoll, EPOLL_CTL_MOD, fd, &ev) == 0;
}

static void go_on(struct client *x)
{
	short remote, local;
	if (!bridge_move(&x->bridge)) {
		end(x);
		return;
	}
	bridge_events(&x->bridge, &remote, &local);
	if (bridge_answered(&x->bridge) && !x->until_ms)
		allow(x, LINGER_MS);
	if (!ask(x, x->bridge.remote, &x->remote, 0, epoll_of(remote)) ||
	        !ask(x, x->bridge.local, &x->local, 1, epoll_of(local)))
		end(x);
}

static bool watch(struct clients *c, int fd, struct watched *w, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = w};
	return epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &ev) == 0;
}

static void on_local(struct watched *w, uint32_t events)
{
	struct client *x = container_of(w, struct client, local);
	(void)events;
	if (x->bridge.remote >= 0)
		go_on(x);
}

/* Through the handshake: the supervisor gets the other end.  0, or -errno: msg_later of it when
 * none takes clients just now, or too many wait for it. */
static int hand_over(struct client *x)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return -errno;
	struct listener_client m = {.head.type = LISTENER_CLIENT};
	(void)str_copy(m.from, sizeof(m.from), x->from);
	int r = msg_send(x->clients->outlet, &m, sizeof(m), &ends[1], 1);
	fd_close(ends[1]);
	if (r < 0) {
		fd_close(ends[0]);
		return r;
	}
	x->bridge.local = ends[0];
	x->local.ready = on_local;
	x->asked[1] = EPOLLIN;
	return watch(x->clients, x->bridge.local, &x->local, EPOLLIN) ? 0 : -errno;
}

static void begin(struct client *x)
{
	int r = hand_over(x);
	x->ready = true;
	x->open = r == 0;
	if (x->open) {
		allow(x, 0);
		go_on(x);
	} else if (msg_later(r) && ask(x, x->bridge.remote, &x->remote, 0, 0)) {
		list_remove(&x->link);
		list_append(&x->clients->ready, &x->link);
	} else {
		log_debug("%s: %s", x->from, strerror(-r));
		end(x);
	}
}

bool clients_again(struct clients *c)
{
	struct client *x;
	while ((x = list_first(&c->ready, struct client, link))) {
		begin(x);
		if (x->bridge.remote >= 0 && !x->open)
			return false; /* at the end of those that wait, again */
	}
	return true;
}

static void shake(struct client *x)
{
	struct err e;
	int r = secure_handshake(x->bridge.secure, &e);
	if (r < 0) {
		log_debug("%s: %s", x->from, e.text);
		end(x);
	} else if (r > 0) {
		begin(x);
	} else {
		uint32_t events = secure_wants_write(x->bridge.secure) ? EPOLLOUT : EPOLLIN;
		if (!ask(x, x->bridge.remote, &x->remote, 0, events))
			end(x);
	}
}

static void on_remote(struct watched *w, uint32_t events)
{
	struct client *x = container_of(w, struct client, remote);
	if (x->bridge.remote < 0)
		return;
	if ((events & EPOLLERR) || (x->ready && !x->open))
		end(x); /* of those that wait for the supervisor only the end is told */
	else if (x->open)
		go_on(x);
	else
		shake(x);
}

static void mind(int fd)
{
	const int on = 1, unacked = UNACKED_MS, idle = KEEPALIVE_S;
	/* Each only helps to notice sooner that somebody has gone, or to answer sooner. */
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked, sizeof(unacked));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void clients_add(struct clients *c, int fd, const char *from, struct secure_service *s)
{
	struct err e;
	struct client *x = xnew(struct client);
	x->clients = c;
	x->bridge.remote = fd;
	x->bridge.local = -1;
	x->remote.ready = on_remote;
	(void)str_copy(x->from, sizeof(x->from), from);
	list_init(&x->link);
	allow(x, HANDSHAKE_MS);
	c->n++;
	mind(fd);
	x->asked[0] = EPOLLIN;
	bool ok = watch(c, fd, &x->remote, EPOLLIN);
	if (ok && s)
		ok = (x->bridge.secure = secure_new(s, fd, NULL, &e)) != NULL;
	if (!ok)
		end(x);
	else if (!s)
		begin(x);
}

bool clients_room(struct clients *c)
{
	struct client *x = list_first(&c->timed, struct client, link);
	if (c->n >= c->most && x)
		end(x);
	return c->n < c->most;
}

void clients_tick(struct clients *c, int64_t now_ms)
{
	list_for_each (x, &c->timed, struct client, link)
		if (now_ms >= x->until_ms)
			end(x);
	list_for_each (y, &c->ready, struct client, link)
		if (now_ms >= y->until_ms)
			end(y);
}
