/*
 * buf.h - a growing byte buffer with a limit fixed where it is made.
 *
 * Always NUL-terminated after the first append, so `b.p` can be used as a
 * string when the content has no NUL.  Appending beyond the limit fails with
 * -ENOBUFS and leaves the buffer as it was; the failure is sticky (`failed`),
 * so a chain of appends can be checked once at the end.
 *
 *	auto_buf struct buf b = BUF_INIT(LIMIT_LINE);
 *	buf_put(&b, p, n);
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/err.h"

#include <stddef.h>

struct buf {
	char *p;      /* owned, NULL when empty */
	size_t len;   /* bytes used */
	size_t room;  /* bytes allocated */
	size_t limit; /* most bytes ever held */
	int failed;   /* 0, or the first -errno of an append */
};

#define BUF_INIT(max)                                                                              \
	{                                                                                          \
		.p = NULL, .len = 0, .room = 0, .limit = (max), .failed = 0                        \
	}

void buf_done(struct buf *b); /* frees; the buffer may be used again */
static inline void auto_buf_(struct buf *b)
{
	buf_done(b);
}
#define auto_buf __attribute__((cleanup(auto_buf_)))

int buf_put(struct buf *b, const void *p, size_t n);
int buf_puts(struct buf *b, const char *s);
int buf_putc(struct buf *b, char c);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Room for n more bytes at b->p + b->len; the caller adds to len.  0 or -errno. */
MUST_USE int buf_reserve(struct buf *b, size_t n);
/* Drops the first n bytes (n <= len). */
void buf_consume(struct buf *b, size_t n);
void buf_clear(struct buf *b); /* keeps the memory; clears `failed` */
/* Hands the bytes over (owned, NUL-terminated; never NULL). */
char *buf_take(struct buf *b);

#endif
