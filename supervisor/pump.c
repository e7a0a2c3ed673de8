#include "supervisor/pump.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/veil.h"
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

/* What is there of one line: how many bytes. */
static size_t feed_line(
        struct splitter *s, const char *p, size_t n, splitter_line_fn *line, void *ctx)
{
	const char *nl = memchr(p, '\n', n);
	size_t k = nl ? (size_t)(nl - p) : n;
	if (nl && s->rest.len == 0 && !s->over && k <= s->line_max) {
		line(ctx, p, k, true); /* the common case: no copy */
	} else {
		hold(s, p, k, line, ctx);
		if (nl)
			end_line(s, line, ctx);
	}
	return k + (nl != NULL);
}

void splitter_feed(struct splitter *s, const char *p, size_t n, splitter_line_fn *line, void *ctx)
{
	for (size_t at = 0; at < n;)
		at += feed_line(s, p + at, n - at, line, ctx);
}

size_t splitter_feed_until(struct splitter *s, const char *p, size_t n, splitter_line_fn *line,
        void *ctx, int64_t until_us)
{
	size_t at = 0;
	do
		at += feed_line(s, p + at, n - at, line, ctx);
	while (at < n && clock_mono_us() < until_us);
	return at;
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

/* An event of one line takes 20 to 50 us, and a read may have five thousand lines: a turn's share.
 */
enum { LINES_US = 1000 };

struct stream {
	struct op op;
	struct pump *pump;
	enum pump_stream which;
	int fd; /* owned, -1 at its end */
	bool paused;
	struct splitter split;
	struct veil_stream veiled;
};

struct pump {
	struct loop *loop;
	struct pump_calls calls;
	void *ctx;
	struct stream streams[2];
	struct op in;             /* waits until stdin takes more */
	struct op retry;          /* the timer while paused */
	struct op more;           /* the next turn, while lines are untold */
	struct buf untold;        /* of a read */
	size_t told_of;           /* of `untold` */
	struct stream *untold_of; /* borrowed; NULL: nothing is untold */
	bool telling;             /* within line() */
	bool giving_up;           /* when all is told */
	struct op later;          /* drained(), when it must not be called at once */
	int stdin_fd;             /* owned, -1 when closed */
	struct buf queue;         /* for stdin */
	size_t written;           /* of `queue` */
	uint64_t skip; /* bytes of what comes for stdin that were written before our time */
	bool eof;      /* close stdin when all is written */
	bool held, closed, told;
	struct veil *veil; /* owned; NULL: all passes */
};

/* The ring tells when there is something; the read itself is a call, with nothing of ours between
 * the kernel's taking the bytes and their being in the journal.  Were it a request of the ring,
 * its bytes would be in our memory alone for as long as a turn lasts, and lost with it. */
static void read_more(struct stream *s);

static bool inflight(const struct pump *p)
{
	return p->in.inflight || p->retry.inflight || p->later.inflight || p->more.inflight ||
	       p->streams[0].op.inflight || p->streams[1].op.inflight;
}

static void bury(struct pump *p)
{
	if (!p->closed || inflight(p))
		return;
	for (int i = 0; i < 2; i++) {
		fd_close(p->streams[i].fd);
		splitter_done(&p->streams[i].split);
		veil_stream_done(&p->streams[i].veiled);
	}
	free(p->veil);
	fd_close(p->stdin_fd);
	buf_done(&p->queue);
	buf_done(&p->untold);
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
	if (!s->pump->closed && s->pump->calls.batch)
		s->pump->calls.batch(s->pump->ctx, s->which);
}

/* Bytes that may be told. */
static void pass(struct stream *s, const char *p, size_t n)
{
	if (n && !s->pump->closed)
		s->pump->calls.bytes(s->pump->ctx, s->which, p, n);
}

static void tell_waits(struct stream *s)
{
	size_t n;
	const char *p = veil_waits(&s->veiled, &n);
	if (s->pump->veil && s->pump->calls.waits && !s->pump->closed)
		s->pump->calls.waits(s->pump->ctx, s->which, p, n);
}

static void end_stream(struct stream *s)
{
	fd_close(take_fd(s->fd));
	s->paused = false;
	size_t n;
	const char *rest = veil_rest(&s->veiled, &n);
	pass(s, rest, n);
	if (n) {
		splitter_feed(&s->split, rest, n, split_line, s);
		end_batch(s);
	}
	veil_stream_done(&s->veiled);
	s->veiled = (struct veil_stream)VEIL_STREAM_INIT;
	tell_waits(s);
	if (!s->pump->closed)
		s->pump->calls.bytes(s->pump->ctx, s->which, "", 0);
	splitter_end(&s->split, split_line, s);
	end_batch(s);
}

static void tell_busy(struct pump *p, enum pump_stream which, bool on)
{
	if (p->calls.busy)
		p->calls.busy(p->ctx, which, on);
}

static void retried(struct op *op, int res, uint32_t flags);

/* Whoever takes the bytes cannot now: they stay in the pipe. */
static bool paused(struct stream *s)
{
	struct pump *p = s->pump;
	if (!p->calls.ready || p->calls.ready(p->ctx))
		return false;
	s->paused = true;
	if (!p->retry.inflight)
		loop_timeout(p->loop, &p->retry, PUMP_RETRY_MS, retried);
	return true;
}

/* The lines of a read: from p[n], or what is left of one; for so long. */
static size_t tell_lines(struct stream *s, const char *bytes, size_t n, int64_t us)
{
	struct pump *p = s->pump;
	p->telling = true;
	size_t k = splitter_feed_until(
	        &s->split, bytes, n, split_line, s, us < 0 ? INT64_MAX : clock_mono_us() + us);
	p->telling = false;
	if (k == n)
		end_batch(s);
	return k;
}

static void tell_rest(struct pump *p, int64_t us)
{
	struct stream *s = p->untold_of;
	p->told_of += tell_lines(s, p->untold.p + p->told_of, p->untold.len - p->told_of, us);
	if (p->told_of == p->untold.len)
		p->untold_of = NULL;
}

static void give_up(struct pump *p);

/* All is told: both streams may be read again, or are given up. */
static void go_on(struct pump *p)
{
	if (p->giving_up) {
		give_up(p);
		tell_drained(p);
		return;
	}
	for (int i = 0; i < 2 && !p->closed; i++) {
		struct stream *s = &p->streams[i];
		if (s->fd >= 0 && !s->op.inflight && !s->paused)
			read_more(s);
	}
}

static void told_more(struct op *op, int res, uint32_t flags)
{
	(void)res;
	(void)flags;
	struct pump *p = container_of(op, struct pump, more);
	if (!p->closed && !p->held) {
		if (p->untold_of)
			tell_rest(p, LINES_US);
		if (p->closed) {
			/* by what it was told */
		} else if (p->untold_of) {
			loop_timeout(p->loop, &p->more, 0, told_more);
		} else {
			go_on(p);
		}
	}
	bury(p);
}

static void tell_some(struct stream *s, const char *bytes, size_t n)
{
	struct pump *p = s->pump;
	size_t k = tell_lines(s, bytes, n, LINES_US);
	if (k == n || p->closed)
		return;
	buf_clear(&p->untold);
	(void)buf_put(&p->untold, bytes + k, n - k); /* fits: it has room for a read */
	p->told_of = 0;
	p->untold_of = s;
	loop_timeout(p->loop, &p->more, 0, told_more);
}

void pump_settle(struct pump *p)
{
	if (p && p->untold_of && !p->telling && !p->closed)
		tell_rest(p, -1); /* told_more, which is on its way, goes on */
}

static void take_some(struct stream *s)
{
	struct pump *p = s->pump;
	static char bytes[LIMIT_PUMP_READ]; /* its lines are told before the next read */
	tell_busy(p, s->which, true);
	ssize_t n = read(s->fd, bytes, sizeof(bytes));
	int error = n < 0 ? errno : 0;
	size_t may = 0;
	char *told = n > 0 ? veil_pass(p->veil, &s->veiled, bytes, (size_t)n, &may) : NULL;
	pass(s, told, may);
	tell_waits(s);
	tell_busy(p, s->which, false);
	if (n > 0) {
		if (may) /* else this read brings nothing, neither now nor when it is taken up again
		          */
			tell_some(s, told, may);
		if (p->giving_up && !p->untold_of)
			go_on(p);
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
	if (!p->closed && s->fd >= 0 && !p->held && !p->untold_of) {
		if (res >= 0 && paused(s)) {
			/* It was asked when the poll began, which may be long ago. */
		} else if (res >= 0) {
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
	if (p->held || p->untold_of)
		return;
	if (!paused(s))
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
	p->untold = (struct buf)BUF_INIT(LIMIT_PUMP_READ + VEIL_WINDOW);
	for (int i = 0; i < 2; i++) {
		struct stream *s = &p->streams[i];
		s->pump = p;
		s->which = (enum pump_stream)i;
		s->fd = fds[i + 1];
		s->split = (struct splitter)SPLITTER_INIT;
		s->veiled = (struct veil_stream)VEIL_STREAM_INIT;
	}
	return p;
}

struct pump *pump_new(struct loop *l, const int fds[3], const struct pump_calls *calls, void *ctx)
{
	struct pump *p = pump_new_held(l, fds, calls, ctx, 0);
	pump_go(p);
	return p;
}

void pump_veil(struct pump *p, const struct veil *v)
{
	if (!v || !v->nforms)
		return;
	p->veil = p->veil ? p->veil : xnew(struct veil);
	*p->veil = *v;
}

void pump_waited(struct pump *p, enum pump_stream which, char *bytes, size_t n)
{
	size_t may; /* nothing: it is as long as it was, and of what waits */
	if (p->streams[which].fd >= 0)
		(void)veil_pass(p->veil, &p->streams[which].veiled, bytes, n, &may);
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
	tell_busy(p, PUMP_STDIN, true);
	ssize_t n = write(p->stdin_fd, p->queue.p + p->written, p->queue.len - p->written);
	int error = n < 0 ? errno : 0;
	if (n > 0 && p->calls.wrote)
		p->calls.wrote(p->ctx, (size_t)n);
	tell_busy(p, PUMP_STDIN, false);
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
	if (p->untold_of && !p->more.inflight)
		loop_timeout(p->loop, &p->more, 0, told_more);
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

bool pump_idle(const struct pump *p)
{
	for (int i = 0; i < 2; i++)
		if (p->streams[i].fd < 0 || p->streams[i].split.rest.len ||
		        p->streams[i].split.over ||
		        p->streams[i].veiled.all.len > p->streams[i].veiled.passed)
			return false;
	return !p->untold_of && p->stdin_fd >= 0 && !p->eof && p->written == p->queue.len;
}

void pump_pass(struct pump *p, const struct pump_calls *calls, void *ctx)
{
	p->calls = *calls;
	p->ctx = ctx;
}

static void cancel(struct pump *p, struct op *op)
{
	if (op->inflight)
		loop_cancel(p->loop, op);
}

static void give_up(struct pump *p)
{
	for (int i = 0; i < 2 && !p->closed; i++)
		if (p->streams[i].fd >= 0) {
			cancel(p, &p->streams[i].op);
			end_stream(&p->streams[i]);
		}
}

void pump_give_up(struct pump *p)
{
	p->giving_up = true;
	if (p->untold_of || p->telling)
		return; /* what was read is told first */
	give_up(p);
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
	cancel(p, &p->more);
	for (int i = 0; i < 2; i++)
		cancel(p, &p->streams[i].op);
	/* pump_close may come from a callback of the pump: bury() then happens on the way out. */
	if (!inflight(p))
		loop_timeout(p->loop, &p->later, 0, told_later);
}
