#include "client/frames.h"

#include <string.h>

int frames_next(const char *p, size_t n, struct frame *ret, struct err *e)
{
	if (n < STDIO_HEAD)
		return 0;
	uint8_t head[STDIO_HEAD];
	memcpy(head, p, STDIO_HEAD);
	size_t len = stdio_length(head);
	if (len > FRAMES_MAX)
		return err_set(e, -EBADMSG, "the daemon sent a frame of %zu bytes", len);
	if (n - STDIO_HEAD < len)
		return 0;
	*ret = (struct frame){head[0], (const uint8_t *)p + STDIO_HEAD, len};
	return (int)(STDIO_HEAD + len);
}

int frames_put(struct buf *to, enum stdio_stream s, const void *data, size_t n)
{
	uint8_t head[STDIO_HEAD];
	stdio_pack(head, s, n);
	int r = buf_reserve(to, STDIO_HEAD + n); /* whole or not at all */
	if (r < 0)
		return r;
	buf_put(to, head, STDIO_HEAD);
	return buf_put(to, data, n);
}

int frames_put_signal(struct buf *to, int sig)
{
	uint8_t number = (uint8_t)sig;
	return frames_put(to, STDIO_SIGNAL, &number, 1);
}

int frames_put_resize(struct buf *to, unsigned rows, unsigned cols)
{
	uint8_t size[4] = {
	        (uint8_t)(rows >> 8), (uint8_t)rows, (uint8_t)(cols >> 8), (uint8_t)cols};
	return frames_put(to, STDIO_RESIZE, size, sizeof(size));
}
