/*
 * frames.h - frames of an interactive connection, packed and taken apart.
 *
 * Pure; proto/stdio.h has the layout.
 */
#ifndef CLIENT_FRAMES_H
#define CLIENT_FRAMES_H

#include "base/buf.h"
#include "base/err.h"
#include "proto/stdio.h"

enum { FRAMES_MAX = 1 << 20 }; /* longest taken: an exit frame with much to tell */

struct frame {
	uint8_t stream;      /* enum stdio_stream, or what a later daemon may send */
	const uint8_t *data; /* borrowed: into the bytes given */
	size_t len;
};

/* The frame at the start of p[0..n).  Bytes it takes, 0: not whole yet, -EBADMSG: too long. */
MUST_USE int frames_next(const char *p, size_t n, struct frame *ret, struct err *e);

/* Appends one frame. 0 or -errno. */
int frames_put(struct buf *to, enum stdio_stream s, const void *data, size_t n);
int frames_put_signal(struct buf *to, int sig);
int frames_put_resize(struct buf *to, unsigned rows, unsigned cols);

#endif
