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
};

struct pump {
	struct loop *loop;
	struct pump_calls calls;
	void *ctx;
	struct stream streams[2];
	struct op in;     /* waits until stdin takes more */
	struct op retry;  /* the timer while paused */
	struct op later;  /* drained(), when it must not be called at once */
	int stdin_fd;     /* owned, -1 when closed */
	struct buf queue; /* for stdin */
	size_t written;   /* of `queue` */
	uint64_t skip;    /* bytes of what comes for stdin that were written before our time */
	bool eof;         /* close stdin when all is written */
	bool held, closed, told;
};

/* The ring tells when there is something; the read itself is a call, with nothing of ours between
 * the kernel's taking the bytes and their being in the journal.  Were it a request of the ring,
 * its bytes would be in our memory alone for as long as a turn lasts, and lost with it. */
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
	}
	fd_close(p->stdin_fd);
	buf_done(&p->queue);
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
	if (!s->pump->closed)
		s->pump->calls.bytes(s->pump->ctx, s->which, "", 0);
	splitter_end(&s->split, split_line, s);
	end_batch(s);
}

static void take_some(struct stream *s)
{
	struct pump *p = s->pump;
	static char bytes[LIMIT_PUMP_READ]; /* its lines are told before the next read */
	p->calls.busy(p->ctx, s->which, true);
	ssize_t n = read(s->fd, bytes, sizeof(bytes));
	int error = n < 0 ? errno : 0;
	if (n > 0)
		p->calls.bytes(p->ctx, s->which, bytes, (size_t)n);
	p->calls.busy(p->ctx, s->which, false);
	if (n > 0) {
		splitter_feed(&s->split, bytes, (size_t)n, split_line, s);
		end_batch(s);
	} else if (error != EAGAIN && error != EINTR) {
		end_stream(s); /* EOF, or an error that no retry would heal */
		tell_drained(p);
		return;
	}
	if (!p->closed && s->fd >= 0)
		read_more(s);
}

/* In `closed` the callbacks are over, and the last completion frees. */
static void readable(struct op *op, int res, uint32_t flags)
{
	(void)flags;
	struct stream *s = container_of(op, struct stream, op);
	struct pump *p = s->pump;
	if (!p->closed && s->fd >= 0 && !p->held) {
		if (res >= 0) {
			take_some(s);
		} else if (res == -EINTR) {
			read_more(s);
		} else {
			end_stream(s);
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
	if (p->held)
		return;
	if (!p->calls.ready(p->ctx)) {
		s->paused = true;
		if (!p->retry.inflight)
			loop_timeout(p->loop, &p->retry, PUMP_RETRY_MS, retried);
		return;
	}
	loop_poll(p->loop, &s->op, s->fd, POLLIN, false, readable);
}

struct pump *pump_new_held(struct loop *l, const int fds[3], const struct pump_calls *calls,
        void *ctx, uint64_t stdin_done)
{
	struct pump *p = xnew(struct pump);
	p->held = true;
	p->skip = stdin_done;
	p->loop = l;
	p->calls = *calls;
	p->ctx = ctx;
	p->stdin_fd = fds[0];
	p->queue = (struct buf)BUF_INIT(2 * (size_t)LIMIT_PROMPT);
	for (int i = 0; i < 2; i++) {
		struct stream *s = &p->streams[i];
		s->pump = p;
		s->which = (enum pump_stream)i;
		s->fd = fds[i + 1];
		s->split = (struct splitter)SPLITTER_INIT;
	}
	return p;
}

struct pump *pump_new(struct loop *l, const int fds[3], const struct pump_calls *calls, void *ctx)
{
	struct pump *p = pump_new_held(l, fds, calls, ctx, 0);
	pump_go(p);
	return p;
}

void pump_replay(struct pump *p, enum pump_stream which, const char *bytes, size_t n)
{
	struct stream *s = &p->streams[which];
	if (s->fd < 0)
		return;
	if (n == 0) {
		end_stream(s);
		return;
	}
	p->calls.bytes(p->ctx, which, bytes, n);
	splitter_feed(&s->split, bytes, n, split_line, s);
	end_batch(s);
}

void pump_hold(struct pump *p)
{
	p->held = true;
}

/* ---- stdin ---- */

static void close_stdin(struct pump *p)
{
	fd_close(take_fd(p->stdin_fd));
	if (!p->closed)
		p->calls.stdin_ended(p->ctx);
}

static void writable(struct op *op, int res, uint32_t flags);

static bool write_some(struct pump *p)
{
	p->calls.busy(p->ctx, PUMP_STDIN, true);
	ssize_t n = write(p->stdin_fd, p->queue.p + p->written, p->queue.len - p->written);
	int error = n < 0 ? errno : 0;
	if (n > 0)
		p->calls.wrote(p->ctx, (size_t)n);
	p->calls.busy(p->ctx, PUMP_STDIN, false);
	p->written += n > 0 ? (size_t)n : 0;
	if (error == EAGAIN)
		loop_poll(p->loop, &p->in, p->stdin_fd, POLLOUT, false, writable);
	else if (error && error != EINTR)
		/* EPIPE: the agent closed its stdin; what it did not read is of no use to it. */
		close_stdin(p);
	return p->stdin_fd >= 0 && !p->in.inflight;
}

static void write_more(struct pump *p)
{
	if (p->in.inflight || p->stdin_fd < 0 || p->held)
		return;
	while (p->written < p->queue.len)
		if (!write_some(p))
			return;
	buf_clear(&p->queue);
	p->written = 0;
	if (p->eof)
		close_stdin(p);
}

static void writable(struct op *op, int res, uint32_t flags)
{
	(void)flags;
	struct pump *p = container_of(op, struct pump, in);
	if (res < 0 && res != -EINTR)
		close_stdin(p);
	if (!p->closed)
		write_more(p);
	bury(p);
}

int pump_write(struct pump *p, const char *bytes, size_t n, bool eof)
{
	if (p->stdin_fd < 0 || p->eof)
		return 0;
	size_t skip = n < p->skip ? n : (size_t)p->skip;
	int rc = buf_put(&p->queue, bytes + skip, n - skip);
	if (rc < 0)
		return rc;
	p->skip -= skip;
	p->eof = eof;
	write_more(p);
	return 0;
}

int pump_room(const struct pump *p, size_t n)
{
	if (p->stdin_fd < 0 || p->eof)
		return -EPIPE;
	return p->queue.len + n > 2 * (size_t)LIMIT_PROMPT ? -ENOBUFS : 0;
}

void pump_go(struct pump *p)
{
	p->held = false;
	for (int i = 0; i < 2; i++)
		if (p->streams[i].fd >= 0 && !p->streams[i].op.inflight)
			read_more(&p->streams[i]);
	write_more(p);
	/* What was replayed may have ended both. */
	if (pump_drained(p) && !p->told && !p->later.inflight)
		loop_timeout(p->loop, &p->later, 0, told_later);
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
