/*
 * Any bytes as the daemon's answer, whole and in pieces: both must mean the
 * same.  What follows a 101 is taken apart as frames.
 */
#include "base/http1.h"

#include "client/frames.h"
#include "base/mem.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BODY = 64 << 10 };

/* Bytes taken, or a negative errno. */
static ssize_t feed(struct http1 *h, const char *p, size_t n, size_t step, struct buf *body)
{
	struct err e = {0};
	size_t at = 0;
	while (at < n) {
		size_t k = n - at < step ? n - at : step;
		ssize_t used = http1_feed(h, p + at, k, body, &e);
		if (used < 0)
			return e.code == used && e.text[0] ? used : -1;
		if ((size_t)used > k)
			abort();
		at += (size_t)used;
		if ((size_t)used < k)
			break;
	}
	if (at < n && h->state != HTTP1_DONE && h->state != HTTP1_UPGRADED)
		abort(); /* bytes may be left over only there */
	return (ssize_t)at;
}

static void frames(const char *p, size_t n)
{
	struct frame f;
	struct err e;
	while (n) {
		int r = frames_next(p, n, &f, &e);
		if (r <= 0)
			return;
		if ((size_t)r > n || (const char *)f.data < p ||
		        (const char *)f.data + f.len > p + n)
			abort();
		p += r;
		n -= (size_t)r;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	const char *p = (const char *)data + 1;
	size_t n = size - 1, step = (data[0] & 0x3f) + 1u;
	struct http1 whole = HTTP1_INIT, parts = HTTP1_INIT;
	whole.head_only = parts.head_only = data[0] >> 7;
	struct buf a = BUF_INIT(BODY), b = BUF_INIT(BODY);
	ssize_t taken = feed(&whole, p, n, n, &a), also = feed(&parts, p, n, step, &b);
	if (taken == -1 || taken != also)
		abort();
	if (taken >= 0) {
		struct err e;
		if (whole.state != parts.state || whole.status != parts.status || a.len != b.len ||
		        (a.len && memcmp(a.p, b.p, a.len) != 0))
			abort();
		if (whole.state == HTTP1_UPGRADED)
			frames(p + taken, n - (size_t)taken);
		if (http1_eof(&whole, &e) != http1_eof(&parts, &e))
			abort();
	}
	http1_done(&whole);
	http1_done(&parts);
	buf_done(&a);
	buf_done(&b);
	return 0;
}
