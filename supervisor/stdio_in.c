/*
 * stdio_in.c - a client's frames: checked, and put into the jail.
 */
#include "base/fd.h"
#include "base/log.h"
#include "supervisor/daemon.h"
#include "supervisor/stdio_private.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

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

void stdio_resize(struct stdio *s, unsigned rows, unsigned cols)
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
	stdio_control_frame(s, STDIO_NOTICE, text, (size_t)n);
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
		stdio_resize(s, (unsigned)p[0] << 8 | p[1], (unsigned)p[2] << 8 | p[3]);
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
	stdio_step(s);
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
	/* Never more than STDIO_SMALL_MAX: head_refused has seen the length. */
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
			stdio_leave(s);
	}
	stdio_step(s);
}

void stdio_in_next(struct stdio *s)
{
	if (!s->upgraded)
		return;
	take_input(s);
	if (s->broken)
		return;
	if (s->recv_ended && !s->feed.inflight)
		close_stdin(s);
	if (!s->recv_ended && !s->recv.inflight && !s->feed.inflight && s->in_at == s->in_len)
		loop_read(s->d->loop, &s->recv, s->sock, s->in, STDIO_FRAME_MAX, on_recv);
}
