/*
 * Theory of operation.
 *
 * Each completion and each word of agentboxd changes a few fields and calls
 * stdio_step(), which looks at all of them and starts whatever can be started:
 * reading a pipe whose frame is sent, sending a frame, reading the client when
 * the process has taken what came before, the exit frame when both outputs have
 * ended and the process (the jail, where this was its last command) is gone.
 *
 * Pipes and sockets are non-blocking; before 6.4 the ring does not wait for
 * such pipes but says EAGAIN, and for terminals it does so still.  Then the
 * same operation polls first.
 */
#include "base/fd.h"
#include "base/json.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/egress_news.h"
#include "supervisor/http.h"
#include "supervisor/shared_jail.h"
#include "supervisor/stdio_private.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

enum {
	/* After the process of an exec has ended, others that hold its pipes may go on for ever;
	 * what is on its way comes within this. */
	DRAIN_MS = 1000,
	HANGUP_MS = 2000, /* between SIGHUP and SIGKILL when the client left an exec */
	/* A client that closed its sending side only: how often to look for the rest. */
	HALF_CLOSED_MS = 1000,
	CONTROL_MAX = 64 << 10,                 /* notices and the exit frame */
	NOTICES_ROOM = CONTROL_MAX - (8 << 10), /* for notices */
	LANE_BYTES = STDIO_HEAD + STDIO_FRAME_MAX,
};

/* ---- life ---- */

static bool busy(const struct stdio *s)
{
	return s->out.op.inflight || s->err.op.inflight || s->send.inflight || s->recv.inflight ||
	       s->feed.inflight || s->timer.inflight || s->hangup.inflight;
}

static void cancel_all(struct stdio *s)
{
	struct loop *l = s->d->loop;
	struct op *ops[] = {
	        &s->out.op, &s->err.op, &s->send, &s->recv, &s->feed, &s->timer, &s->hangup};
	for (size_t i = 0; i < ARRAY_LEN(ops); i++)
		loop_cancel(l, ops[i]);
}

static void lane_init(struct stdio *s, struct lane *l, enum stdio_stream stream, uint8_t *buf)
{
	l->owner = s;
	l->buf = buf;
	l->stream = stream;
	l->fd = -1;
	l->veiled = (struct veil_stream)VEIL_STREAM_INIT;
}

/* What is in the pipes can still be read, and a client that is slow to do so keeps nobody from the
 * workspace. */
static void let_jail_go(struct stdio *s)
{
	if (s->spec.jail && !s->off)
		shared_jail_leave(s->spec.jail);
	s->off = true;
}

/* It was the last command, or time is over: the end of the jail will be told. */
static bool jail_ends(const struct stdio *s)
{
	return s->spec.jail && shared_jail_ends(s->spec.jail);
}

/* Frees when the client's side is over, the process has ended or will, and the kernel has nothing.
 */
static bool bury(struct stdio *s)
{
	bool ended = s->end.gone || s->end.exited || s->killed || jail_ends(s);
	if (!s->abandoned || (s->attached && !ended))
		return false;
	let_jail_go(s);
	jails_unwatch(s->d->jails, &s->watch);
	if (busy(s)) {
		cancel_all(s);
		return true;
	}
	if (s->upgraded)
		http_upgraded_close(s->upgraded);
	shared_jail_unref(s->spec.jail);
	fd_close(s->out.fd);
	fd_close(s->err.fd);
	fd_close(s->stdin_fd);
	buf_done(&s->control);
	veil_stream_done(&s->out.veiled);
	veil_stream_done(&s->err.veiled);
	free(s->veil);
	free(s->buffers);
	free(s);
	return true;
}

static void on_timer(struct op *op, int res, uint32_t flags)
{
	struct stdio *s = container_of(op, struct stdio, timer);
	(void)flags;
	if (res == -ETIME && s->end.exited && (s->out.len > 0 || s->err.len > 0)) {
		loop_timeout(s->d->loop, &s->timer, DRAIN_MS, on_timer); /* a slow client */
	} else if (res == -ETIME && s->end.exited) {
		/* Others hold the pipes: what they still write is not this process's. */
		s->drained = true;
		loop_cancel(s->d->loop, &s->out.op);
		loop_cancel(s->d->loop, &s->err.op);
	} else if (res == -ETIME) {
		jails_signal(s->d->jails, s->jail, s->exec, SIGKILL);
		s->killed = true;
	}
	stdio_step(s);
}

/* Its terminal is gone, so to say; who ignores that is killed. */
static void hang_up(struct stdio *s)
{
	jails_signal(s->d->jails, s->jail, s->exec, SIGHUP);
	loop_timeout(s->d->loop, &s->timer, HANGUP_MS, on_timer);
}

/* The client is not there any more. */
void stdio_leave(struct stdio *s)
{
	if (s->abandoned)
		return;
	s->abandoned = true;
	let_jail_go(s);
	if (s->attached && !s->end.exited && !s->end.gone && !jail_ends(s))
		hang_up(s);
}

void stdio_abandon(void *ctx)
{
	struct stdio *s = ctx;
	stdio_leave(s);
	stdio_step(s);
}

/* ---- out of the jail ---- */

static void put_frame(struct lane *l, size_t n)
{
	stdio_pack(l->buf, l->stream, n);
	l->len = n ? STDIO_HEAD + n : 0;
}

/* The program of a run may come into a jail after a command of a client. */
static const struct veil *veil_of(struct stdio *s)
{
	const struct jail_live *live = s->veil ? NULL : jails_find(s->d->jails, s->jail);
	if (live && live->veil.nforms) {
		s->veil = xnew(struct veil);
		*s->veil = live->veil;
	}
	return s->veil;
}

/* What is typed at a terminal is to be seen at once: there each read is looked at for itself. */
static void took(struct lane *l, size_t n)
{
	char *p = (char *)l->buf + STDIO_HEAD;
	const struct veil *v = veil_of(l->owner);
	if (v && l->owner->spec.tty) {
		(void)veil_text(v, p, n);
	} else if (v) {
		const char *told = veil_pass(v, &l->veiled, p, n, &n);
		memcpy(p, told, n); /* fits: see read_lane */
	}
	put_frame(l, n);
}

static size_t lane_waits(const struct lane *l)
{
	size_t n;
	(void)veil_waits(&l->veiled, &n);
	return n;
}

/* At its end what waited goes on, too. */
static void take_rest(struct lane *l)
{
	size_t n;
	if (l->fd >= 0 || l->len > 0 || lane_waits(l) == 0)
		return;
	const char *rest = veil_rest(&l->veiled, &n);
	memcpy(l->buf + STDIO_HEAD, rest, n);
	veil_stream_done(&l->veiled);
	put_frame(l, n);
}

static void on_lane(struct op *op, int res, uint32_t flags)
{
	struct lane *l = container_of(op, struct lane, op);
	(void)flags;
	if (l->polling) {
		l->polling = false;
		/* Cancelled: as if at its end. */
		if (res == -ECANCELED)
			fd_close(take_fd(l->fd));
	} else if (res == -EAGAIN) {
		l->polling = true;
		loop_poll(l->owner->d->loop, &l->op, l->fd, POLLIN, false, on_lane);
		return;
	} else if (res > 0) {
		took(l, (size_t)res);
	} else {
		/* 0, or EIO of a terminal whose last process is gone. */
		fd_close(take_fd(l->fd));
	}
	stdio_step(l->owner);
}

static void read_lane(struct stdio *s, struct lane *l)
{
	if (s->drained && !l->op.inflight)
		fd_close(take_fd(l->fd));
	if (l->fd >= 0 && !l->op.inflight && l->len == 0)
		loop_read(s->d->loop, &l->op, l->fd, l->buf + STDIO_HEAD,
		        STDIO_FRAME_MAX - VEIL_WINDOW, on_lane);
	take_rest(l);
}

static void on_send(struct op *op, int res, uint32_t flags)
{
	struct stdio *s = container_of(op, struct stdio, send);
	(void)flags;
	if (s->send_polling) {
		s->send_polling = false;
	} else if (res == -EAGAIN) {
		s->send_polling = true;
		loop_poll(s->d->loop, &s->send, s->sock, POLLOUT, false, on_send);
		return;
	} else if (res < 0) {
		stdio_leave(s);
	} else {
		s->sent += (size_t)res;
		size_t whole = s->sending ? s->sending->len : s->control.len;
		if (s->sent == whole) {
			s->sent = 0;
			if (s->sending)
				s->sending->len = 0;
			else
				buf_clear(&s->control);
		}
	}
	stdio_step(s);
}

static void send_next(struct stdio *s)
{
	if (!s->upgraded || s->send.inflight)
		return;
	if (s->sent == 0) {
		/* In turns, so that neither output starves the other. */
		struct lane *first = s->sending == &s->out ? &s->err : &s->out;
		struct lane *second = first == &s->out ? &s->err : &s->out;
		if (s->control.len > 0)
			s->sending = NULL;
		else if (first->len > 0)
			s->sending = first;
		else if (second->len > 0)
			s->sending = second;
		else
			return;
	}
	const void *p = s->sending ? (const void *)s->sending->buf : s->control.p;
	size_t n = s->sending ? s->sending->len : s->control.len;
	loop_write(s->d->loop, &s->send, s->sock, (const char *)p + s->sent, n - s->sent, on_send);
}

void stdio_control_frame(struct stdio *s, enum stdio_stream stream, const char *p, size_t n)
{
	uint8_t head[STDIO_HEAD];
	stdio_pack(head, stream, n);
	buf_put(&s->control, head, sizeof(head));
	buf_put(&s->control, p, n);
}

/* ---- the client leaves ---- */

/* Its sending direction alone may be closed: a script that sends all it has and then reads.  A
 * poll cannot tell us of the rest without firing at once, so we look now and then. */
static void on_hangup(struct op *op, int res, uint32_t flags)
{
	struct stdio *s = container_of(op, struct stdio, hangup);
	(void)flags;
	struct pollfd p = {.fd = s->sock};
	if (res == -ECANCELED) {
		stdio_step(s);
		return;
	}
	if (poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)))
		stdio_leave(s);
	else if (!s->abandoned)
		loop_timeout(s->d->loop, &s->hangup, HALF_CLOSED_MS, on_hangup);
	stdio_step(s);
}

/* ---- the end ---- */

static bool lane_ended(const struct lane *l)
{
	return l->fd < 0 && l->len == 0 && lane_waits(l) == 0;
}

static void finish(struct stdio *s)
{
	bool over = s->end.gone || (s->end.exited && !jail_ends(s));
	if (!over || !lane_ended(&s->out) || !lane_ended(&s->err))
		return;
	if (!s->exit_queued) {
		s->exit_queued = true;
		auto_buf struct buf b = BUF_INIT(CONTROL_MAX);
		stdio_exit_json(&s->end, &b);
		stdio_control_frame(s, STDIO_EXIT, b.p, b.len);
	} else if (s->upgraded && s->control.len == 0) {
		s->abandoned = true; /* all is said */
	}
}

void stdio_step(struct stdio *s)
{
	if (s->broken && !s->send.inflight && s->control.len == 0)
		stdio_leave(s);
	if (!s->abandoned && s->attached) {
		read_lane(s, &s->out);
		read_lane(s, &s->err);
		stdio_in_next(s);
		finish(s);
		send_next(s);
	}
	if (s->abandoned)
		(void)bury(s);
}

static void note_timeout(struct stdio *s)
{
	s->end.timed_out = s->spec.jail && shared_jail_timed_out(s->spec.jail);
}

static void on_exited(struct jail_watch *w, const struct jail_exited *x)
{
	struct stdio *s = container_of(w, struct stdio, watch);
	if (x->exec != s->exec || s->end.exited)
		return;
	s->end.exited = true;
	s->end.exit = *x;
	note_timeout(s);
	let_jail_go(s); /* with the last one: what they left running has no one to run for */
	if (!jail_ends(s) && !s->timer.inflight)
		loop_timeout(s->d->loop, &s->timer, DRAIN_MS, on_timer);
	stdio_step(s);
}

static void on_jail_gone(struct jail_watch *w, const struct jail_gone *x)
{
	struct stdio *s = container_of(w, struct stdio, watch);
	if (!s->end.exited)
		note_timeout(s);
	s->end.gone = true;
	s->end.jail = *x;
	jails_unwatch(s->d->jails, &s->watch);
	stdio_step(s);
}

/* What the command itself is told looks to it like a network that is down.  Notices that a slow
 * client leaves no room for are dropped: they are in the log, and the exit must fit. */
static void on_egress(struct jail_watch *w, const struct jail_egress *x)
{
	struct stdio *s = container_of(w, struct stdio, watch);
	if (x->verdict != EGRESS_DENIED || !s->attached || s->exit_queued)
		return;
	auto_buf struct buf b = BUF_INIT(EGRESS_NEWS_MAX);
	egress_news_notice(x, &b);
	if (b.failed || s->control.len + b.len + STDIO_HEAD > NOTICES_ROOM)
		return;
	stdio_control_frame(s, STDIO_NOTICE, b.p, b.len);
	stdio_step(s);
}

/* ---- the beginning ---- */

struct stdio *stdio_new(struct daemon *d, const struct stdio_spec *spec)
{
	struct stdio *s = xnew(struct stdio);
	s->d = d;
	s->spec = *spec;
	s->sock = s->stdin_fd = -1;
	/* Whole from the start: it must not move when a frame is put behind one that is on its way.
	 */
	s->control = (struct buf){.p = xrealloc(NULL, 1, CONTROL_MAX + 1),
	        .room = CONTROL_MAX + 1,
	        .limit = CONTROL_MAX};
	s->buffers = xrealloc(NULL, 1, 2 * LANE_BYTES + STDIO_FRAME_MAX);
	lane_init(s, &s->out, STDIO_STDOUT, s->buffers);
	lane_init(s, &s->err, STDIO_STDERR, s->buffers + LANE_BYTES);
	s->in = s->buffers + (size_t)2 * LANE_BYTES;
	list_init(&s->watch.link);
	s->watch.exited = on_exited;
	s->watch.egress = on_egress;
	s->watch.gone = on_jail_gone;
	return s;
}

struct jail_watch *stdio_watch(struct stdio *s)
{
	return &s->watch;
}

void stdio_attach(
        struct stdio *s, const struct jail_reply *reply, int fds[MSG_FDS], const char *notices)
{
	s->attached = true;
	s->jail = reply->jail;
	s->exec = reply->exec;
	if (s->spec.tty) {
		s->out.fd = take_fd(fds[0]);
		s->stdin_fd = fcntl(s->out.fd, F_DUPFD_CLOEXEC, 0);
		if (s->spec.rows && s->spec.cols)
			stdio_resize(s, s->spec.rows, s->spec.cols);
	} else {
		s->stdin_fd = take_fd(fds[0]);
		s->out.fd = take_fd(fds[1]);
		s->err.fd = take_fd(fds[2]);
	}
	for (const char *p = notices; *p;) {
		size_t n = strcspn(p, "\n");
		stdio_control_frame(s, STDIO_NOTICE, p, n);
		p += n + (p[n] == '\n');
	}
}

void stdio_start(void *ctx, struct http_upgraded *u, int fd, const void *p, size_t n)
{
	struct stdio *s = ctx;
	s->upgraded = u;
	s->sock = fd;
	/* At most what one connection's buffer holds, and that is no more than `in`. */
	if (n > STDIO_FRAME_MAX) {
		stdio_leave(s);
		stdio_step(s);
		return;
	}
	if (n > 0)
		memcpy(s->in, p, n);
	s->in_len = n;
	loop_poll(s->d->loop, &s->hangup, fd, 0, false, on_hangup);
	stdio_step(s);
}
