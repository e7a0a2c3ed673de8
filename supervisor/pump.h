/*
 * pump.h - moves an agent's bytes: reads stdout and stderr through the ring,
 * splits lines, writes stdin.
 *
 * Memory is flat whatever the agent does: at most LIMIT_LINE bytes are held of
 * a line, what is longer is passed on in pieces of LIMIT_RAW_PIECE (`whole`
 * false) up to its newline; an agent that never reads its stdin blocks
 * nothing.  While ready() is false nothing more is read (the pipe fills and the
 * agent waits).
 *
 * A read of many short lines is told in parts, so that one agent does not hold all
 * else; until the last of them nothing more is read, of neither stream: lines come in
 * the order of the reads.
 *
 * Line splitting alone is struct splitter: pure, linear in the bytes.
 */
#ifndef SUPERVISOR_PUMP_H
#define SUPERVISOR_PUMP_H

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct veil;

/* ---- lines ---- */

struct splitter {
	struct buf rest;        /* a line without its end yet */
	bool over;              /* within a line that is passed on in pieces */
	size_t line_max, piece; /* LIMIT_LINE, LIMIT_RAW_PIECE; smaller in tests */
};
#define SPLITTER_INIT                                                                              \
	{                                                                                          \
		.rest = BUF_INIT(LIMIT_LINE + LIMIT_PUMP_READ), .line_max = LIMIT_LINE,            \
		.piece = LIMIT_RAW_PIECE                                                           \
	}

/* n bytes without their newline; `whole` false: a piece of a long line. */
typedef void splitter_line_fn(void *ctx, const char *p, size_t n, bool whole);
void splitter_feed(struct splitter *s, const char *p, size_t n, splitter_line_fn *line, void *ctx);
/* The same until a time of clock_mono_us, but for one line at least: how many bytes. */
size_t splitter_feed_until(struct splitter *s, const char *p, size_t n, splitter_line_fn *line,
        void *ctx, int64_t until_us);
/* The end of the stream: a last line without newline is a line. */
void splitter_end(struct splitter *s, splitter_line_fn *line, void *ctx);
void splitter_done(struct splitter *s);

/* ---- the pump ---- */

struct pump;

enum pump_stream { PUMP_STDOUT, PUMP_STDERR, PUMP_STDIN };
enum { PUMP_RETRY_MS = 10 /* how soon ready() is asked again: well below a human's notice */ };

/* busy, wrote, batch, waits: NULL where nobody wants to know.  ready: NULL, always. */
struct pump_calls {
	void (*line)(void *ctx, enum pump_stream s, const char *p, size_t n, bool whole);
	/* Every read, before its lines; no bytes: the stream's end. */
	void (*bytes)(void *ctx, enum pump_stream s, const char *p, size_t n);
	/* From `on` until not, a read or write of that stream is in the kernel's hands: what it
	 * takes or gives is not yet known.  Not while it only waits. */
	void (*busy)(void *ctx, enum pump_stream s, bool on);
	void (*wrote)(void *ctx, size_t n);
	void (*stdin_ended)(void *ctx); /* it is closed: all is written, or nobody reads it */
	/* The lines of that read have been told; more may be long in coming. */
	void (*batch)(void *ctx, enum pump_stream s);
	bool (*ready)(void *ctx);
	/* After a read: what of it is not told yet, for it could be the beginning of a secret. */
	void (*waits)(void *ctx, enum pump_stream s, const char *p, size_t n);
	/* Both streams are at their end.  Once; not from within pump_new. */
	void (*drained)(void *ctx);
};

/* Takes the descriptors: {stdin write end, stdout, stderr read ends}.  calls and ctx are borrowed
 * until pump_close. */
struct pump *pump_new(struct loop *l, const int fds[3], const struct pump_calls *calls, void *ctx);

/* ---- going on where another pump was ---- */

/* As pump_new, on hold; the stdin may be -1: it has ended.  Of what is written to it the first
 * `stdin_done` bytes are there already. */
struct pump *pump_new_held(struct loop *l, const int fds[3], const struct pump_calls *calls,
        void *ctx, uint64_t stdin_done);
/* Secrets are kept out of what is read from now on; copied, NULL: there are none.  On hold. */
void pump_veil(struct pump *p, const struct veil *v);
/* What waited there, too. */
void pump_waited(struct pump *p, enum pump_stream s, char *bytes, size_t n);
/* As if this had just been read; no bytes: the stream's end. */
void pump_replay(struct pump *p, enum pump_stream s, const char *bytes, size_t n);
void pump_hold(struct pump *p); /* nothing new is read or written */
void pump_go(struct pump *p);

/* ---- use ---- */

/* Queues bytes for stdin (-ENOBUFS beyond LIMIT_PROMPT * 2); `eof`: close it after them. */
int pump_write(struct pump *p, const char *bytes, size_t n, bool eof);
/* Would it be taken?  0; -EPIPE: stdin is closed; -ENOBUFS: as above. */
MUST_USE int pump_room(const struct pump *p, size_t n);
/* What was read is told to the end, before something else is noted behind it; not from within
 * line(), where nothing is done.  NULL is fine. */
void pump_settle(struct pump *p);
bool pump_drained(const struct pump *p);
/* All three are open, all is written, all lines are told, and none is half read. */
bool pump_idle(const struct pump *p);
/* From now on these are called, with this. */
void pump_pass(struct pump *p, const struct pump_calls *calls, void *ctx);
/* Stops reading: what is not yet read is given up and drained() comes. */
void pump_give_up(struct pump *p);
/* No more callbacks; freed when the kernel has given back the buffers.  NULL is fine. */
void pump_close(struct pump *p);

#endif
