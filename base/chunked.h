/*
 * chunked.h - decoding a chunked body as it arrives (RFC 9112, 7.1).
 *
 * Pure and strict: sizes are 1 to 15 hexadecimal digits, every line ends with
 * CR LF.  Chunk extensions and trailer fields are bounded and dropped.
 */
#ifndef BASE_CHUNKED_H
#define BASE_CHUNKED_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct chunked {
	int state;              /* private */
	uint64_t left;          /* of the chunk */
	uint32_t digits, extra; /* counted against their limits */
	bool blank;             /* the trailer line so far is empty */
	bool done;              /* the last chunk and its trailer are through */
};

#define CHUNKED_INIT                                                                               \
	{                                                                                          \
		0                                                                                  \
	}

/* Decodes from p[n] into `to`, at most `room` bytes of body.  Bytes consumed (0 is possible
 * only when room or n is 0 or it is done), or -EBADMSG. */
MUST_USE ssize_t chunked_decode(
        struct chunked *c, const char *p, size_t n, struct buf *to, size_t room);

#endif
