/*
 * Theory of operation.
 *
 * Each completion and each word of agentboxd changes a few fields and calls
 * step(), which looks at all of them and starts whatever can be started:
 * reading a pipe whose frame is sent, sending a frame, reading the client when
 * the process has taken what came before, the exit frame when both outputs have
 * ended and the process (the jail, where this was its last command) is gone.
 *
 * Pipes and sockets are non-blocking; before 6.4 the ring does not wait for
 * such pipes but says EAGAIN, and for terminals it does so still.  Then the
 * same operation polls first.
 */
#include "supervisor/stdio.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "proto/stdio.h"
#include "supervisor/daemon.h"
#include "supervisor/egress_news.h"
#include "supervisor/http.h"
#include "supervisor/loop.h"
#include "supervisor/shared_jail.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
	/* After the process of an exec has ended, others that hold its pipes may go on for ever;
	 * what is on its way comes within this. */
	DRAIN_MS = 1000,
	HANGUP_MS = 2000, /* between SIGHUP and SIGKILL when the client left an exec */
	/* A client that closed its sending side only: how often to look for the rest. */
	HALF_CLOSED_MS = 1000,
	CONTROL_MAX = 64 << 10,                 /* notices and the exit frame */
	NOTICES_ROOM = CONTROL_MAX - (8 << 10), /* for notices */
	SMALL_MAX = 4,                          /* payload of a signal or resize frame */
	LANE_BYTES = STDIO_HEAD + STDIO_FRAME_MAX,
};

/* One direction of bytes out of the jail, a frame at a time. */
struct lane {
	struct op op;
	struct stdio *owner;
	enum stdio_stream stream;
	int fd; /* owned; -1: at its end */
	bool polling;
	size_t len;   /* of the frame in buf; 0: none */
	uint8_t *buf; /* LANE_BYTES, part of stdio.buffers */
};

struct stdio {
	struct daemon *d;
	struct stdio_spec spec;
	struct jail_watch watch;
	uint64_t jail, exec;
	struct stdio_end end;

	struct http_upgraded *upgraded; /* NULL before the start */
	int sock;                       /* borrowed: until http_upgraded_close */
	struct lane out, err;
	struct buf control; /* frames that go before any other */
	struct op send;
	bool send_polling;
	struct lane *sending; /* NULL: control */
	size_t sent;
	bool exit_queued;

	struct op recv;
	bool recv_polling, recv_ended;
	uint8_t *in; /* STDIO_FRAME_MAX, part of buffers */
	size_t in_len, in_at;
	uint8_t head[STDIO_HEAD];
	size_t head_len, left; /* left: payload bytes still to come */
	uint8_t small[SMALL_MAX];
	size_t small_len;

	struct op feed;
	bool feed_polling;
	int stdin_fd; /* owned; -1: closed */
	size_t feeding;

	struct op timer; /* drain and hang-up */
	struct op hangup;
	bool attached, killed, abandoned;
	bool off;     /* the jail need not live for it any more */
	bool broken;  /* the client does not speak the protocol: it hears so, then it is cut */
	bool drained; /* the outputs are at their end, whoever holds the pipes */
	/* Owned: one allocation, left as it comes, because to clear 192 KiB for `echo hi` would
	 * touch every page of it. */
	uint8_t *buffers;
};

static void step(struct stdio *s);

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
	step(s);
}

/* Its terminal is gone, so to say; who ignores that is killed. */
static void hang_up(struct stdio *s)
{
	jails_signal(s->d->jails, s->jail, s->exec, SIGHUP);
	loop_timeout(s->d->loop, &s->timer, HANGUP_MS, on_timer);
}

/* The client is not there any more. */
static void leave(struct stdio *s)
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
	leave(s);
	step(s);
}

/* ---- out of the jail ---- */

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
		stdio_pack(l->buf, l->stream, (size_t)res);
		l->len = STDIO_HEAD + (size_t)res;
	} else {
		/* 0, or EIO of a terminal whose last process is gone. */
		fd_close(take_fd(l->fd));
	}
	step(l->owner);
}

static void read_lane(struct stdio *s, struct lane *l)
{
	if (s->drained && !l->op.inflight)
		fd_close(take_fd(l->fd));
	if (l->fd >= 0 && !l->op.inflight && l->len == 0)
		loop_read(s->d->loop, &l->op, l->fd, l->buf + STDIO_HEAD, STDIO_FRAME_MAX, on_lane);
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
		leave(s);
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
	step(s);
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

static void control_frame(struct stdio *s, enum stdio_stream stream, const char *p, size_t n)
{
	uint8_t head[STDIO_HEAD];
	stdio_pack(head, stream, n);
	buf_put(&s->control, head, sizeof(head));
	buf_put(&s->control, p, n);
}

/* ---- into the jail ---- */

static void close_stdin(struct stdio *s)
{
	if (s->stdin_fd < 0 || s->feed.inflight)
		return;
	if (s->spec.tty) {
		/* A terminal cannot be closed in one direction: its user would type ^D. */
		static const char eot = 4;
		if (write(s->stdin_fd, &eot, 1) < 0)
			log_debug("stdio: ^D did not fit");
	}
	fd_close(take_fd(s->stdin_fd));
}

static void resize(struct stdio *s, unsigned rows, unsigned cols)
{
	struct winsize size = {.ws_row = (uint16_t)rows, .ws_col = (uint16_t)cols};
	/* The kernel sends SIGWINCH to the terminal's foreground group. */
	if (s->spec.tty && s->out.fd >= 0 && ioctl(s->out.fd, TIOCSWINSZ, &size) < 0)
		log_debug("stdio: resize: %s", strerror(errno));
}

/* What follows a frame that we do not know cannot be trusted to be frames at all. */
static void break_off(struct stdio *s, const char *why)
{
	char text[160];
	int n = snprintf(text, sizeof(text), "{\"message\":\"protocol error: %s (stream %d)\"}",
	        why, s->head[0]);
	s->broken = true;
	control_frame(s, STDIO_NOTICE, text, (size_t)n);
}

/* The head of a frame is there: may a client send such a one?  NULL, or why not. */
static const char *head_refused(const struct stdio *s)
{
	switch (s->head[0]) {
	case STDIO_STDIN:
		return NULL;
	case STDIO_SIGNAL:
		return s->left == 1 ? NULL : "a signal is one byte";
	case STDIO_RESIZE:
		return s->left == 4 ? NULL : "a size is four bytes";
	case STDIO_STDIN_EOF:
		return s->left == 0 ? NULL : "the end of stdin has no bytes";
	default:
		return "clients send no such frame";
	}
}

static void small_frame(struct stdio *s)
{
	const uint8_t *p = s->small;
	if (s->head[0] == STDIO_SIGNAL && (p[0] < 1 || p[0] > 64))
		break_off(s, "there is no such signal");
	else if (s->head[0] == STDIO_SIGNAL && !s->end.exited)
		jails_signal(s->d->jails, s->jail, s->exec, p[0]);
	else if (s->head[0] == STDIO_RESIZE)
		resize(s, (unsigned)p[0] << 8 | p[1], (unsigned)p[2] << 8 | p[3]);
	else if (s->head[0] == STDIO_STDIN_EOF)
		close_stdin(s);
	s->small_len = 0;
}

static void on_feed(struct op *op, int res, uint32_t flags)
{
	struct stdio *s = container_of(op, struct stdio, feed);
	(void)flags;
	if (s->feed_polling) {
		s->feed_polling = false;
	} else if (res == -EAGAIN) {
		s->feed_polling = true;
		loop_poll(s->d->loop, &s->feed, s->stdin_fd, POLLOUT, false, on_feed);
		return;
	} else if (res < 0) {
		/* It reads no more (EPIPE): the rest is dropped, as a shell's pipe would. */
		fd_close(take_fd(s->stdin_fd));
	} else {
		s->in_at += (size_t)res;
		s->left -= (size_t)res;
	}
	step(s);
}

/* A piece of payload: to the process, into `small`, or nowhere.  False: wait for the process. */
static bool take_payload(struct stdio *s)
{
	size_t n = s->in_len - s->in_at;
	if (n > s->left)
		n = s->left;
	if (s->head[0] == STDIO_STDIN && s->stdin_fd >= 0) {
		loop_write(s->d->loop, &s->feed, s->stdin_fd, s->in + s->in_at, n, on_feed);
		return false;
	}
	/* Never more than SMALL_MAX: head_refused has seen the length. */
	for (size_t i = 0; i < n && s->head[0] != STDIO_STDIN; i++)
		s->small[s->small_len++] = s->in[s->in_at + i];
	s->in_at += n;
	s->left -= n;
	return true;
}

static void take_head(struct stdio *s)
{
	s->head[s->head_len++] = s->in[s->in_at++];
	if (s->head_len < STDIO_HEAD)
		return;
	s->left = stdio_length(s->head);
	const char *why = head_refused(s);
	if (why)
		break_off(s, why);
}

static void take_input(struct stdio *s)
{
	while (!s->broken && !s->feed.inflight &&
	        (s->in_at < s->in_len || s->head_len == STDIO_HEAD)) {
		if (s->head_len < STDIO_HEAD) {
			take_head(s);
			continue;
		}
		if (s->left == 0) {
			s->head_len = 0;
			small_frame(s);
		} else if (s->in_at == s->in_len || !take_payload(s)) {
			return;
		}
	}
}

static void on_recv(struct op *op, int res, uint32_t flags)
{
	struct stdio *s = container_of(op, struct stdio, recv);
	(void)flags;
	if (s->recv_polling) {
		s->recv_polling = false;
	} else if (res == -EAGAIN) {
		s->recv_polling = true;
		loop_poll(s->d->loop, &s->recv, s->sock, POLLIN, false, on_recv);
		return;
	} else if (res > 0) {
		s->in_at = 0;
		s->in_len = (size_t)res;
	} else {
		s->recv_ended = true;
		if (res < 0 && res != -ECANCELED)
			leave(s);
	}
	step(s);
}

static void recv_next(struct stdio *s)
{
	if (!s->upgraded)
		return;
	take_input(s);
	if (s->broken) {
		send_next(s);
		return;
	}
	if (s->recv_ended && !s->feed.inflight)
		close_stdin(s);
	if (!s->recv_ended && !s->recv.inflight && !s->feed.inflight && s->in_at == s->in_len)
		loop_read(s->d->loop, &s->recv, s->sock, s->in, STDIO_FRAME_MAX, on_recv);
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
		step(s);
		return;
	}
	if (poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)))
		leave(s);
	else if (!s->abandoned)
		loop_timeout(s->d->loop, &s->hangup, HALF_CLOSED_MS, on_hangup);
	step(s);
}

/* ---- the end ---- */

static const char *reason(const struct stdio_end *end)
{
	if (end->timed_out)
		return "timeout";
	if (end->gone && end->jail.end == JAIL_END_OOM)
		return "oom";
	if (!end->exited)
		return "killed";
	if (end->exit.error)
		return "start";
	return end->exit.sig ? "signal" : "exit";
}

void stdio_exit_json(const struct stdio_end *end, struct buf *to)
{
	struct jw w = JW_INIT(to);
	jw_open(&w, NULL, '{');
	if (end->exited && end->exit.error)
		jw_int(&w, "code", jails_start_code(&end->exit));
	else if (end->exited && !end->exit.sig && !end->timed_out)
		jw_int(&w, "code", end->exit.code);
	else
		jw_int(&w, "signal", end->exited && end->exit.sig ? end->exit.sig : SIGKILL);
	jw_str(&w, "reason", reason(end));
	if (end->exited && end->exit.error) {
		char why[JAILS_WHY];
		jails_why(&end->exit, why);
		jw_str(&w, "error", why);
	}
	if (end->gone)
		jails_resources(&w, &end->jail.resources);
	jw_close(&w, '}');
}

static bool lane_ended(const struct lane *l)
{
	return l->fd < 0 && l->len == 0;
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
		control_frame(s, STDIO_EXIT, b.p, b.len);
	} else if (s->upgraded && s->control.len == 0) {
		s->abandoned = true; /* all is said */
	}
}

static void step(struct stdio *s)
{
	if (s->broken && !s->send.inflight && s->control.len == 0)
		leave(s);
	if (!s->abandoned && s->attached) {
		read_lane(s, &s->out);
		read_lane(s, &s->err);
		finish(s);
		send_next(s);
		recv_next(s);
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
	step(s);
}

static void on_jail_gone(struct jail_watch *w, const struct jail_gone *x)
{
	struct stdio *s = container_of(w, struct stdio, watch);
	if (!s->end.exited)
		note_timeout(s);
	s->end.gone = true;
	s->end.jail = *x;
	jails_unwatch(s->d->jails, &s->watch);
	step(s);
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
	control_frame(s, STDIO_NOTICE, b.p, b.len);
	step(s);
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
			resize(s, s->spec.rows, s->spec.cols);
	} else {
		s->stdin_fd = take_fd(fds[0]);
		s->out.fd = take_fd(fds[1]);
		s->err.fd = take_fd(fds[2]);
	}
	for (const char *p = notices; *p;) {
		size_t n = strcspn(p, "\n");
		control_frame(s, STDIO_NOTICE, p, n);
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
		leave(s);
		step(s);
		return;
	}
	if (n > 0)
		memcpy(s->in, p, n);
	s->in_len = n;
	loop_poll(s->d->loop, &s->hangup, fd, 0, false, on_hangup);
	step(s);
}
