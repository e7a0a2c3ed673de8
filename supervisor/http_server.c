/*
 * Theory of operation.
 *
 * Who is connected, for how long, and who makes room: conns.h.  A connection
 * that is cut is shut down; its end is then told by epoll and closes it.
 *
 * Connections are served in the hook phase of a turn and only there: readiness
 * of the epoll descriptor, new connections, answers, wake-ups and timers merely
 * queue them or set `dirty`.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "proto/listener.h"
#include "supervisor/http_private.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	/* After "out of descriptors", before we accept again. */
	ACCEPT_PAUSE_MS = 100,
	/* At a handover: from a connection to its first request. */
	FIRST_REQUEST_MS = 500,
	/* Clients taken in a turn, of each kind. */
	CLIENTS = 64,
	/* What epoll tells at a time. */
	EVENTS = 64,
	/* Of a turn, for streams: an event that thousands follow must not hold all else. */
	STREAMS_US = 2000,
};

static void touch(struct http *h)
{
	h->dirty = true;
	loop_again(h->loop);
}

static void enlist(struct http_conn *c)
{
	if (!list_empty(&c->work))
		return;
	c->lane = c->request && c->request->streams ? HTTP_LANE_STREAMS : HTTP_LANE_ASKS;
	list_append(&c->http->work[c->lane], &c->work);
	c->http->nwork[c->lane]++;
}

static void delist(struct http_conn *c)
{
	c->http->nwork[c->lane]--;
	list_remove(&c->work);
}

void http_queue(struct http_conn *c)
{
	enlist(c);
	touch(c->http);
}

/* ---- connections ---- */

static void adopt(struct http *h, int accepted, bool remote)
{
	auto_close int fd = accepted;
	struct auth_peer peer;
	struct err e;
	if (auth_peer(fd, h->socket_gid, &peer, &e) < 0) {
		log_warn("http: connection dropped: %s", e.text);
		return;
	}
	peer.remote = remote;
	if (remote)
		peer.role = AUTH_NONE;
	bool cut;
	const char *why = conns_room(&h->conns, peer.uid, &cut);
	if (cut)
		touch(h);
	if (why) {
		conns_refuse(fd, why);
		return;
	}
	if (http_conn_new(h, take_fd(fd), &peer))
		touch(h);
	else
		log_warn("http: a connection could not be taken: %s", strerror(errno));
}

static void bury(struct http *h);
static void accept_again(struct http *h);
static void await_remote(struct http *h);

static void on_pause(struct op *op, int res, uint32_t flags)
{
	struct http *h = container_of(op, struct http, pause);
	(void)res;
	(void)flags;
	accept_again(h);
	bury(h);
}

/* By a poll, which is woken with all that wait.  The ring's own accept waits exclusively: of those
 * the first alone is woken, and that may be the ring of a supervisor that was killed, which the
 * kernel takes down later; who had connected then waited until somebody else did (6.18). */
static void on_accept(struct op *op, int res, uint32_t flags)
{
	struct http *h = container_of(op, struct http, accept);
	int fd = -EAGAIN;
	(void)flags;
	for (int i = 0; i < CLIENTS && res >= 0 && !h->stopped; i++) {
		fd = accept4(h->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			fd = -errno;
		else
			adopt(h, fd, false);
		if (fd < 0 && fd != -ECONNABORTED && fd != -EINTR)
			break;
	}
	if (fd < 0 && fd != -EAGAIN && fd != -ECONNABORTED && fd != -EINTR && !h->stopped) {
		log_warn("http: accept: %s", strerror(-fd));
		loop_timeout(h->loop, &h->pause, ACCEPT_PAUSE_MS, on_pause);
	} else {
		accept_again(h);
	}
	bury(h);
}

/* Clients of TCP: each message has one. */
static void on_remote(struct op *op, int res, uint32_t flags)
{
	struct http *h = container_of(op, struct http, remote);
	_Alignas(16) char bytes[MSG_MAX];
	int fds[MSG_FDS], n = -ECANCELED;
	(void)flags;
	for (int i = 0; i < CLIENTS && res >= 0 && !h->stopped; i++) {
		n = msg_recv(h->remote_fd, bytes, fds);
		if (n <= 0)
			break;
		if (((const struct msg_head *)(const void *)bytes)->type == LISTENER_CLIENT &&
		        fds[0] >= 0)
			adopt(h, take_fd(fds[0]), true);
		for (int k = 0; k < MSG_FDS; k++)
			fd_close(fds[k]);
	}
	/* Its other end is agentboxd's too: no end of file without that of all. */
	if (n > 0 || msg_later(n))
		await_remote(h);
	bury(h);
}

static void await_remote(struct http *h)
{
	if (!h->stopped && h->remote_fd >= 0)
		loop_poll(h->loop, &h->remote, h->remote_fd, POLLIN, false, on_remote);
}

static void accept_again(struct http *h)
{
	if (!h->stopped)
		loop_poll(h->loop, &h->accept, h->listen_fd, POLLIN, false, on_accept);
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

static void arm_timer(struct http *h)
{
	bool cut;
	int64_t ms = conns_cut_late(&h->conns, &cut);
	if (cut)
		touch(h);
	if (ms < 0)
		return;
	int64_t at = clock_mono_ms() + ms;
	if (!h->timer.inflight) {
		h->timer_at_ms = at;
		loop_timeout(h->loop, &h->timer, ms, on_timer);
	} else if (at < h->timer_at_ms) {
		loop_cancel(h->loop, &h->timer); /* its end sets it anew */
		h->timer_at_ms = at;
	}
}

/* Only notes what it tells, so that none of them is gone before its turn. */
static void collect(struct http *h)
{
	struct epoll_event events[EVENTS];
	int n;
	do { /* an end there is: each edge is told once */
		n = epoll_wait(h->epoll_fd, events, EVENTS, 0);
		for (int i = 0; i < n; i++) {
			http_conn_told(events[i].data.ptr, events[i].events);
			enlist(events[i].data.ptr);
		}
	} while (n == EVENTS);
}

/* Those that are there now, once each, for `us` at most (-1: all of them). */
static void serve(struct http *h, enum http_lane lane, int64_t us)
{
	struct list *work = &h->work[lane];
	int64_t until = us < 0 ? INT64_MAX : clock_mono_us() + us;
	struct http_conn *c;
	unsigned n = h->nwork[lane];
	for (; n && (c = list_first(work, struct http_conn, work)); n--) {
		delist(c);
		h->running = c;
		bool again = http_conn_run(c);
		h->running = NULL;
		if (again)
			http_queue(c);
		if (us >= 0 && clock_mono_us() >= until)
			break;
	}
	if (!list_empty(work))
		touch(h);
}

static void run(struct loop_hook *hook)
{
	struct http *h = container_of(hook, struct http, hook);
	if (!h->dirty || h->closing)
		return;
	h->dirty = false;
	collect(h);
	serve(h, HTTP_LANE_ASKS, -1);
	serve(h, HTTP_LANE_STREAMS, STREAMS_US);
	arm_timer(h);
	/* One shot: readiness is looked at anew each time, so no edge can be lost. */
	if (!h->ready.inflight)
		loop_poll(h->loop, &h->ready, h->epoll_fd, POLLIN, false, on_ready);
}

/* ---- life ---- */

struct http *http_new(struct loop *l, int listen_fd, int remote_fd, gid_t socket_gid,
        const struct http_service *service, struct err *e)
{
	auto_close int fd = epoll_create1(EPOLL_CLOEXEC);
	if (fd < 0) {
		err_errno(e, "http: epoll");
		return NULL;
	}
	int rc = fd_set_nonblock(listen_fd, 1); /* a service manager's may not be */
	if (rc < 0) {
		(void)err_set(e, rc, "http: the listening socket: %s", strerror(-rc));
		return NULL;
	}
	struct http *h = xnew(struct http);
	h->loop = l;
	h->listen_fd = listen_fd;
	h->remote_fd = remote_fd;
	h->epoll_fd = take_fd(fd);
	h->started_ms = clock_mono_ms();
	h->socket_gid = socket_gid;
	h->service = *service;
	h->scratch = xcalloc(HTTP_SCRATCH, 1);
	h->decoded = (struct buf)BUF_INIT(HTTP_SCRATCH);
	conns_init(&h->conns, conns_affordable());
	for (int i = 0; i < HTTP_LANES; i++)
		list_init(&h->work[i]);
	list_init(&h->upgraded);
	list_init(&h->starved);
	h->hook.run = run;
	loop_hook(l, &h->hook);
	accept_again(h);
	await_remote(h);
	touch(h);
	return h;
}

void http_stop_accepting(struct http *h)
{
	h->stopped = true;
	loop_cancel(h->loop, &h->accept);
	loop_cancel(h->loop, &h->remote);
	loop_cancel(h->loop, &h->pause);
}

/* Who connects asks at once, or keeps the connection for later. */
static bool idle(const struct conn *c)
{
	return c->state == CONN_WAITING && clock_mono_ms() - c->since_ms > FIRST_REQUEST_MS;
}

bool http_quiet(const struct http *h)
{
	if (h->accept.inflight || h->remote.inflight)
		return false;
	for (int s = 0; s < CONN_CUT; s++)
		list_for_each (c, &h->conns.by_state[s], struct conn, link)
			if (!idle(c) && !http_conn_served(container_of(c, struct http_conn, conn)))
				return false;
	return true;
}

void http_cut_actor(struct http *h, const char *id)
{
	for (int s = 0; h && s < CONN_CUT; s++)
		list_for_each (c, &h->conns.by_state[s], struct conn, link)
			if (strcmp(container_of(c, struct http_conn, conn)->actor, id) == 0)
				conns_cut(&h->conns, c);
	if (h)
		touch(h);
}

unsigned http_actor_connections(const struct http_request *r, const char *id)
{
	unsigned n = 0;
	for (int s = 0; s < CONN_CUT; s++)
		list_for_each (c, &r->conn->http->conns.by_state[s], struct conn, link) {
			const struct http_conn *x = container_of(c, struct http_conn, conn);
			n += x != r->conn && strcmp(x->actor, id) == 0;
		}
	return n;
}

unsigned http_connections(const struct http *h)
{
	return h->conns.n;
}

int64_t http_started_ms(const struct http *h)
{
	return h->started_ms;
}

const char *http_date(struct http *h)
{
	time_t now = clock_wall_ms() / 1000;
	struct tm tm;
	if (now != h->date_s && gmtime_r(&now, &tm)) {
		(void)strftime(h->date, sizeof(h->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
		h->date_s = now;
	}
	return h->date;
}

/* Frees the server when it is closing and nothing of it is in the kernel's hands. */
static void bury(struct http *h)
{
	if (!h->closing || h->accept.inflight || h->remote.inflight || h->ready.inflight ||
	        h->timer.inflight || h->pause.inflight)
		return;
	list_remove(&h->hook.link);
	fd_close(h->epoll_fd);
	buf_done(&h->decoded);
	free(h->scratch);
	free(h);
}

void http_free(struct http *h)
{
	if (!h)
		return;
	http_stop_accepting(h);
	list_for_each (u, &h->upgraded, struct http_upgraded, link)
		http_upgraded_close(u);
	for (int s = 0; s < CONN_STATES; s++)
		list_for_each (c, &h->conns.by_state[s], struct conn, link)
			http_conn_close(container_of(c, struct http_conn, conn));
	h->closing = true;
	loop_cancel(h->loop, &h->ready);
	loop_cancel(h->loop, &h->timer);
	bury(h);
}
