#include "supervisor/pump.h"

#include "base/fd.h"
#include "base/mem.h"
#include "supervisor/loop.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* ---- lines ---- */

static void emit_pieces(struct splitter *s, splitter_line_fn *line, void *ctx, bool all)
{
	size_t from = 0;
	while (s->rest.len - from >= s->piece || (all && s->rest.len > from)) {
		size_t n = s->rest.len - from < s->piece ? s->rest.len - from : s->piece;
		line(ctx, s->rest.p + from, n, false);
		from += n;
	}
	buf_consume(&s->rest, from);
}

/* Bytes without a newline. */
static void hold(struct splitter *s, const char *p, size_t n, splitter_line_fn *line, void *ctx)
{
	while (n) {
		/* In steps, so that the buffer's limit holds whatever n is. */
		size_t k = n < LIMIT_PUMP_READ ? n : LIMIT_PUMP_READ;
		(void)buf_put(&s->rest, p, k); /* fits: flushed below before it grows beyond */
		p += k;
		n -= k;
		if (!s->over && s->rest.len > s->line_max)
			s->over = true;
		if (s->over)
			emit_pieces(s, line, ctx, false);
	}
}

static void end_line(struct splitter *s, splitter_line_fn *line, void *ctx)
{
	if (s->over)
		emit_pieces(s, line, ctx, true);
	else
		line(ctx, s->rest.p ? s->rest.p : "", s->rest.len, true);
	s->over = false;
	s->rest.len = 0;
	if (s->rest.room > (1 << 20))
		buf_done(&s->rest); /* one huge line must not cost its memory for the whole run */
}

void splitter_feed(struct splitter *s, const char *p, size_t n, splitter_line_fn *line, void *ctx)
{
	while (n) {
		const char *nl = memchr(p, '\n', n);
		size_t k = nl ? (size_t)(nl - p) : n;
		if (nl && s->rest.len == 0 && !s->over && k <= s->line_max) {
			line(ctx, p, k, true); /* the common case: no copy */
		} else {
			hold(s, p, k, line, ctx);
			if (nl)
				end_line(s, line, ctx);
		}
		k += nl != NULL;
		p += k;
		n -= k;
	}
}

void splitter_end(struct splitter *s, splitter_line_fn *line, void *ctx)
{
	if (s->rest.len || s->over)
		end_line(s, line, ctx);
}

void splitter_done(struct splitter *s)
{
	buf_done(&s->rest);
}

/* ---- the pump ---- */

struct stream {
	struct op op;
	struct pump *pump;
	enum pump_stream which;
	int fd; /* owned, -1 at its end */
	bool paused;
	struct splitter split;
	char *buffer; /* owned: LIMIT_PUMP_READ bytes */
};

struct pump {
	struct loop *loop;
	struct pump_calls calls;
	void *ctx;
	struct stream streams[2];
	struct op in;     /* write to stdin */
	struct op retry;  /* the timer while paused */
	struct op later;  /* drained(), when it must not be called at once */
	int stdin_fd;     /* owned, -1 when closed */
	struct buf queue; /* for stdin, while `writing` is in flight */
	struct buf writing;
	size_t written; /* of `writing` */
	bool eof;       /* close stdin when all is written */
	bool closed, told;
};

/* The descriptors are O_NONBLOCK: before Linux 6.4 a read of a blocking pipe would go to a kernel
 * thread (no FMODE_NOWAIT on pipes).  A nonblocking one gives -EAGAIN at once, so it is polled and
 * then read. */
static void read_more(struct stream *s);

static bool inflight(const struct pump *p)
{
	return p->in.inflight || p->retry.inflight || p->later.inflight ||
	       p->streams[0].op.inflight || p->streams[1].op.inflight;
}

static void bury(struct pump *p)
{
	if (!p->closed || inflight(p))
		return;
	for (int i = 0; i < 2; i++) {
		fd_close(p->streams[i].fd);
		splitter_done(&p->streams[i].split);
		free(p->streams[i].buffer);
	}
	fd_close(p->stdin_fd);
	buf_done(&p->queue);
	buf_done(&p->writing);
	free(p);
}

static void tell_drained(struct pump *p)
{
	if (p->told || !pump_drained(p) || p->closed)
		return;
	p->told = true;
	p->calls.drained(p->ctx); /* may close */
}

static void told_later(struct op *op, int res, uint32_t flags)
{
	(void)res;
	(void)flags;
	struct pump *p = container_of(op, struct pump, later);
	tell_drained(p);
	bury(p);
}

static void split_line(void *ctx, const char *p, size_t n, bool whole)
{
	struct stream *s = ctx;
	if (!s->pump->closed)
		s->pump->calls.line(s->pump->ctx, s->which, p, n, whole);
}

static void end_batch(struct stream *s)
{
	if (!s->pump->closed)
		s->pump->calls.batch(s->pump->ctx, s->which);
}

static void end_stream(struct stream *s)
{
	fd_close(take_fd(s->fd));
	s->paused = false;
	splitter_end(&s->split, split_line, s);
	end_batch(s);
}

static void readable(struct op *op, int res, uint32_t flags)
{
	(void)flags;
	struct stream *s = container_of(op, struct stream, op);
	if (!s->pump->closed && s->fd >= 0) {
		if (res >= 0 || res == -EINTR)
			read_more(s);
		else
			end_stream(s);
		tell_drained(s->pump);
	}
	bury(s->pump);
}

/* In `closed` the callbacks are over, and the last completion frees. */
static void got(struct op *op, int res, uint32_t flags)
{
	(void)flags;
	struct stream *s = container_of(op, struct stream, op);
	struct pump *p = s->pump;
	if (!p->closed && s->fd >= 0) {
		if (res > 0) {
			p->calls.bytes(p->ctx, s->which, (size_t)res);
			splitter_feed(&s->split, s->buffer, (size_t)res, split_line, s);
			end_batch(s);
			if (!p->closed && s->fd >= 0)
				read_more(s);
		} else if (res == -EAGAIN) {
			loop_poll(p->loop, op, s->fd, POLLIN, false, readable);
		} else if (res == -EINTR) {
			read_more(s);
		} else {
			end_stream(s); /* EOF, or an error that no retry would heal */
			tell_drained(p);
		}
	}
	bury(p);
}

static void retried(struct op *op, int res, uint32_t flags)
{
	(void)res;
	(void)flags;
	struct pump *p = container_of(op, struct pump, retry);
	for (int i = 0; i < 2 && !p->closed; i++)
		if (p->streams[i].paused) {
			p->streams[i].paused = false;
			read_more(&p->streams[i]);
		}
	bury(p);
}

static void read_more(struct stream *s)
{
	struct pump *p = s->pump;
	if (!p->calls.ready(p->ctx)) {
		s->paused = true;
		if (!p->retry.inflight)
			loop_timeout(p->loop, &p->retry, PUMP_RETRY_MS, retried);
		return;
	}
	loop_read(p->loop, &s->op, s->fd, s->buffer, LIMIT_PUMP_READ, got);
}

struct pump *pump_new(struct loop *l, const int fds[3], const struct pump_calls *calls, void *ctx)
{
	struct pump *p = xnew(struct pump);
	p->loop = l;
	p->calls = *calls;
	p->ctx = ctx;
	p->stdin_fd = fds[0];
	p->queue = (struct buf)BUF_INIT(2 * (size_t)LIMIT_PROMPT);
	p->writing = (struct buf)BUF_INIT(2 * (size_t)LIMIT_PROMPT);
	for (int i = 0; i < 2; i++) {
		struct stream *s = &p->streams[i];
		s->pump = p;
		s->which = (enum pump_stream)i;
		s->fd = fds[i + 1];
		s->split = (struct splitter)SPLITTER_INIT;
		s->buffer = xcalloc(1, LIMIT_PUMP_READ);
		read_more(s);
	}
	return p;
}

/* ---- stdin ---- */

static void wrote(struct op *op, int res, uint32_t flags);

static void write_more(struct pump *p)
{
	if (p->in.inflight || p->stdin_fd < 0)
		return;
	if (p->written == p->writing.len) {
		buf_clear(&p->writing);
		p->written = 0;
		struct buf next = p->queue;
		p->queue = p->writing;
		p->writing = next;
	}
	if (p->writing.len)
		loop_write(p->loop, &p->in, p->stdin_fd, p->writing.p + p->written,
		        p->writing.len - p->written, wrote);
	else if (p->eof)
		fd_close(take_fd(p->stdin_fd));
}

static void writable(struct op *op, int res, uint32_t flags)
{
	(void)flags;
	struct pump *p = container_of(op, struct pump, in);
	if (res < 0 && res != -EINTR)
		fd_close(take_fd(p->stdin_fd));
	if (!p->closed)
		write_more(p);
	bury(p);
}

static void wrote(struct op *op, int res, uint32_t flags)
{
	(void)flags;
	struct pump *p = container_of(op, struct pump, in);
	if (res == -EAGAIN && !p->closed) {
		loop_poll(p->loop, op, p->stdin_fd, POLLOUT, false, writable);
		return;
	}
	if (res > 0) {
		p->written += (size_t)res;
	} else if (res != -EINTR) {
		/* EPIPE: the agent closed its stdin; what it did not read is of no use to it. */
		fd_close(take_fd(p->stdin_fd));
	}
	if (!p->closed)
		write_more(p);
	bury(p);
}

int pump_write(struct pump *p, const char *bytes, size_t n, bool eof)
{
	if (p->stdin_fd < 0 || p->eof)
		return 0;
	int rc = buf_put(&p->queue, bytes, n);
	if (rc < 0)
		return rc;
	p->eof = eof;
	write_more(p);
	return 0;
}

/* ---- ending ---- */

bool pump_drained(const struct pump *p)
{
	return p->streams[0].fd < 0 && p->streams[1].fd < 0;
}

static void cancel(struct pump *p, struct op *op)
{
	if (op->inflight)
		loop_cancel(p->loop, op);
}

void pump_give_up(struct pump *p)
{
	for (int i = 0; i < 2; i++)
		if (p->streams[i].fd >= 0) {
			cancel(p, &p->streams[i].op);
			end_stream(&p->streams[i]);
		}
	if (!p->told && !p->later.inflight && !p->closed)
		loop_timeout(p->loop, &p->later, 0, told_later);
}

void pump_close(struct pump *p)
{
	if (!p || p->closed)
		return;
	p->closed = true;
	cancel(p, &p->in);
	cancel(p, &p->retry);
	cancel(p, &p->later);
	for (int i = 0; i < 2; i++)
		cancel(p, &p->streams[i].op);
	/* pump_close may come from a callback of the pump: bury() then happens on the way out. */
	if (!inflight(p))
		loop_timeout(p->loop, &p->later, 0, told_later);
}
