#include "client/frames.h"
#include "tests/t.h"

#include <stdbool.h>

int main(void)
{
	struct frame f = {0};
	struct err e = {0};
	struct buf b = BUF_INIT(1 << 20);
	frames_put(&b, STDIO_STDIN, "hello", 5);
	frames_put(&b, STDIO_STDIN_EOF, NULL, 0);
	frames_put_signal(&b, 15);
	frames_put_resize(&b, 50, 300);
	ok(b.len == 4 * STDIO_HEAD + 5 + 0 + 1 + 4, "four frames");
	bool waits = true;
	for (size_t n = 0; n < STDIO_HEAD + 5; n++)
		waits = waits && frames_next(b.p, n, &f, &e) == 0;
	ok(waits, "a frame that is not whole waits, at every byte");
	int n = frames_next(b.p, b.len, &f, &e);
	ok(n == STDIO_HEAD + 5 && f.stream == STDIO_STDIN && f.len == 5 &&
	                memcmp(f.data, "hello", 5) == 0,
	        "stdin");
	size_t at = (size_t)n;
	n = frames_next(b.p + at, b.len - at, &f, &e);
	ok(n == STDIO_HEAD && f.stream == STDIO_STDIN_EOF && f.len == 0, "an empty frame");
	at += (size_t)n;
	n = frames_next(b.p + at, b.len - at, &f, &e);
	ok(f.stream == STDIO_SIGNAL && f.len == 1 && f.data[0] == 15, "a signal");
	at += (size_t)n;
	n = frames_next(b.p + at, b.len - at, &f, &e);
	ok(f.stream == STDIO_RESIZE && f.len == 4 && f.data[1] == 50 && f.data[2] == 1 &&
	                f.data[3] == 44,
	        "a resize is big-endian");
	ok(at + (size_t)n == b.len, "nothing is left");
	ok(frames_next("\1\xff\xff\xff\xff", 5, &f, &e) == -EBADMSG, "an endless frame is refused");

	struct buf small = BUF_INIT(8);
	ok(frames_put(&small, STDIO_STDIN, "hello", 5) == -ENOBUFS && small.len == 0,
	        "a frame goes in whole or not at all");
	buf_done(&b);
	buf_done(&small);
	return done();
}
