/*
 * lines.h - lines of standard input as they come, between other things to wait for.
 */
#ifndef ABCTL_LINES_H
#define ABCTL_LINES_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct lines {
	struct buf rest; /* owned: read and not taken */
	bool ended;      /* nothing more will come */
};
#define LINES_INIT                                                                                 \
	{                                                                                          \
		.rest = BUF_INIT(2 << 20)                                                          \
	}
void lines_done(struct lines *l);

/* One read, which may wait.  0, or -errno (-ENOBUFS: a line of more than 2 MiB). */
MUST_USE int lines_read(struct lines *l);
/* The first whole line, or NULL; *ret_len without its newline.  It stays until lines_take. */
const char *lines_peek(const struct lines *l, size_t *ret_len);
void lines_take(struct lines *l);
void lines_drop(struct lines *l); /* all that was read */

#endif
