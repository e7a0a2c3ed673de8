#include "base/chunked.h"

#include <ctype.h>

enum {
	DIGITS_MAX = 15,     /* no overflow of 64 bits */
	EXTRA_MAX = 8 << 10, /* extensions and trailers together: none are used by known clients */
};

enum { SIZE, EXTENSION, SIZE_LF, DATA, DATA_CR, DATA_LF, TRAILER, TRAILER_LF };

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

static int size_byte(struct chunked *c, char b)
{
	if (isxdigit((unsigned char)b)) {
		if (++c->digits > DIGITS_MAX)
			return -EBADMSG;
		c->left = c->left << 4 | (unsigned)hex(b);
		return 0;
	}
	if (c->digits == 0 || (b != '\r' && b != ';'))
		return -EBADMSG;
	c->state = b == '\r' ? SIZE_LF : EXTENSION;
	return 0;
}

static int text_byte(struct chunked *c, char b, int next)
{
	if (++c->extra > EXTRA_MAX)
		return -EBADMSG;
	if (b == '\r')
		c->state = next;
	else if ((unsigned char)b < 0x20 && b != '\t')
		return -EBADMSG;
	return 0;
}

static int trailer_lf(struct chunked *c)
{
	c->done = c->blank;
	c->blank = true;
	c->state = TRAILER;
	return 0;
}

/* Everything but the data itself, one byte at a time. */
static int frame_byte(struct chunked *c, char b)
{
	switch (c->state) {
	case SIZE:
		return size_byte(c, b);
	case EXTENSION:
		return text_byte(c, b, SIZE_LF);
	case SIZE_LF:
		c->state = c->left ? DATA : TRAILER;
		c->blank = true;
		return b == '\n' ? 0 : -EBADMSG;
	case DATA_CR:
		c->state = DATA_LF;
		return b == '\r' ? 0 : -EBADMSG;
	case DATA_LF:
		c->state = SIZE;
		c->digits = 0;
		return b == '\n' ? 0 : -EBADMSG;
	case TRAILER:
		if (b != '\r')
			c->blank = false;
		return text_byte(c, b, TRAILER_LF);
	default:
		return b == '\n' ? trailer_lf(c) : -EBADMSG;
	}
}

ssize_t chunked_decode(struct chunked *c, const char *p, size_t n, struct buf *to, size_t room)
{
	size_t at = 0;
	while (at < n && !c->done) {
		if (c->state != DATA) {
			int r = frame_byte(c, p[at]);
			if (r < 0)
				return r;
			at++;
			continue;
		}
		size_t k = n - at < c->left ? n - at : (size_t)c->left;
		if (k > room)
			k = room;
		if (k == 0)
			break;
		if (buf_put(to, p + at, k) < 0)
			return -EBADMSG;
		at += k;
		room -= k;
		c->left -= k;
		if (c->left == 0)
			c->state = DATA_CR;
	}
	return (ssize_t)at;
}
