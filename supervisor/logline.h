/*
 * logline.h - lines of an event log: their fixed head, how they are written, how
 * a file of them is read and where in it a number stands.
 */
#ifndef SUPERVISOR_LOGLINE_H
#define SUPERVISOR_LOGLINE_H

#include "base/buf.h"
#include "base/clock.h"
#include "drivers/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The fixed head of a line, as pointers into it. */
struct logline_head {
	uint64_t seq;
	const char *ts, *run, *type; /* not terminated */
	size_t ts_len, run_len, type_len;
};
/* Splits it off without parsing JSON.  false: not one of our lines. */
bool logline_head(const char *line, size_t n, struct logline_head *ret);

/* Reused from line to line. */
struct logline_writer {
	struct buf line; /* the last one, with its newline */
	int64_t stamp_ms;
	char stamp[CLOCK_TEXT_MAX]; /* stamp_ms as text: a busy agent sends many lines in one ms */
};
/* Writes the line of an event into w->line.  0, or -ENOBUFS. */
MUST_USE int logline_encode(struct logline_writer *w, uint64_t seq, const char *session,
        const char *run, enum event_type t, const char *members, size_t n);

/* Calls line() for each whole line from `offset` to `end`; stops when it gives false.  0 or -errno.
 */
typedef bool logline_fn(void *ctx, const char *line, size_t n, uint64_t offset);
int logline_each(int fd, uint64_t offset, uint64_t end, logline_fn *line, void *ctx);

/* ---- where a number stands: one mark a 64 KiB of file ---- */

struct logline_mark {
	uint64_t seq, offset;
};
struct logline_index {
	struct logline_mark *marks; /* owned */
	size_t n, room;
};
void logline_index_add(struct logline_index *x, uint64_t seq, uint64_t offset);
/* The last mark not beyond seq; offset 0 without one. */
uint64_t logline_index_find(const struct logline_index *x, uint64_t seq);
/* The offset of the last mark that is not beyond this one; 0 without one. */
uint64_t logline_index_below(const struct logline_index *x, uint64_t offset);
void logline_index_done(struct logline_index *x);

#endif
