/*
 * render.h - events of a run as a person wants to read them.
 *
 * Pure: events and the time go in, bytes for the terminal come out; nothing
 * here writes, reads a clock or knows a descriptor.  With `live` a status line
 * is kept below the text, redrawn in place: whoever writes the bytes calls
 * render_hide before, and render_status after, each batch of events.  Without
 * `colour` and `live` the result is plain text.
 *
 * Everything that comes from the run passes neutral.h: an agent cannot steer the
 * terminal of who watches it.
 */
#ifndef ABCTL_RENDER_H
#define ABCTL_RENDER_H

#include "base/buf.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct render; /* opaque */

struct render_options {
	bool colour;    /* escape sequences for colour */
	bool live;      /* a status line; the cursor can be moved */
	bool utf8;      /* other marks than ASCII */
	unsigned width; /* columns, 0: do not cut */
};

struct render *render_new(const struct render_options *o);
void render_free(struct render *r);
static inline void auto_render_(struct render **r)
{
	render_free(*r);
}
#define auto_render __attribute__((cleanup(auto_render_)))

void render_resize(struct render *r, unsigned width);

/* One event.  `now_ms` is monotonic; it is used for durations that the events do not tell. */
void render_event(struct render *r, const struct json *event, int64_t now_ms, struct buf *out);

/* Takes the status line away (nothing without one). */
void render_hide(struct render *r, struct buf *out);
/* Draws it, one frame of the spinner on.  Nothing unless `live` and a run is on. */
void render_status(struct render *r, int64_t now_ms, struct buf *out);
/* A word of our own in front of the status ("cancelling..."), NULL for none; static. */
void render_say(struct render *r, const char *word);

#endif
