/*
 * frames.h - events as they go out: read and framed once for all that stand at the same place.
 *
 * A frame is what one read of a session's log is to some followers.  The last few are kept;
 * thousands that wait for the same event share one, and who is behind reads by himself.  What is
 * large is nobody's but its reader's.
 */
#ifndef SUPERVISOR_FRAMES_H
#define SUPERVISOR_FRAMES_H

#include "base/buf.h"
#include "supervisor/eventlog.h"
#include "supervisor/logline.h"

#include <stdbool.h>

enum frames_format { FRAMES_SSE, FRAMES_NDJSON };

/* What of the log is wanted. */
struct frames_spec {
	enum frames_format format;
	const char *run; /* "": events of all runs; else up to its run.done */
	uint64_t from;   /* events before that number are none of its own; 0: all are */
};

struct frame {
	struct buf out; /* may be empty: all was of other runs */
	bool ended;     /* with the run's last event */
	unsigned refs;  /* frames.c's */
};

struct frames;

struct frames *frames_new(void);
void frames_free(struct frames *fs); /* those that are held live on */

/* The next events at the cursor, which goes on behind them: at least one if one is visible, and no
 * further one beyond `max` bytes; one of more than `limit` bytes is -ENOBUFS.
 * 1 with *ret owned (frames_drop), 0: nothing more for now, -errno. */
MUST_USE int frames_next(struct frames *fs, struct eventlog *g, const struct frames_spec *spec,
        struct eventlog_cursor *c, size_t max, size_t limit, struct frame **ret, struct err *e);
void frames_drop(struct frame *f); /* NULL is fine */

/* Appends one line of the log (without its newline) as a frame; pure. */
void frames_put(struct buf *to, enum frames_format f, const struct logline_head *h,
        const char *line, size_t n);
bool frames_of_run(const struct logline_head *h, const char *run); /* "": all are */
bool frames_is_done(const struct logline_head *h);

#endif
