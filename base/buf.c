#include "base/buf.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void buf_done(struct buf *b)
{
	free(b->p);
	b->p = NULL;
	b->len = b->room = 0;
	b->failed = 0;
}

int buf_reserve(struct buf *b, size_t n)
{
	if (b->failed)
		return b->failed;
	if (n > b->limit || b->len > b->limit - n)
		return b->failed = -ENOBUFS;
	size_t need = b->len + n + 1;
	if (need <= b->room)
		return 0;
	size_t room = b->room ? b->room : 64;
	while (room < need)
		room *= 2;
	if (room > b->limit + 1)
		room = b->limit + 1;
	char *p = realloc(b->p, room);
	if (!p)
		return b->failed = -ENOMEM;
	b->p = p;
	b->room = room;
	return 0;
}

int buf_put(struct buf *b, const void *p, size_t n)
{
	int r = buf_reserve(b, n);
	if (r < 0)
		return r;
	if (n)
		memcpy(b->p + b->len, p, n);
	b->len += n;
	b->p[b->len] = '\0';
	return 0;
}

int buf_puts(struct buf *b, const char *s)
{
	return buf_put(b, s, strlen(s));
}

int buf_putc(struct buf *b, char c)
{
	return buf_put(b, &c, 1);
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	int r = n < 0 ? -EINVAL : buf_reserve(b, (size_t)n);
	if (r == 0) {
		vsnprintf(b->p + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
	return r;
}

void buf_consume(struct buf *b, size_t n)
{
	if (n >= b->len) {
		b->len = 0;
	} else {
		memmove(b->p, b->p + n, b->len - n);
		b->len -= n;
	}
	if (b->p)
		b->p[b->len] = '\0';
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->failed = 0;
	if (b->p)
		b->p[0] = '\0';
}

char *buf_take(struct buf *b)
{
	char *p = b->p ? b->p : xstrdup("");
	b->p = NULL;
	b->len = b->room = 0;
	return p;
}
