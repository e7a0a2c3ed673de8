/* Any bytes as a request head, and what follows it as a chunked body. */
#include "egress/http.h"

#include "base/chunked.h"
#include "base/mem.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void inside(struct http_text t, const char *p, size_t n)
{
	if (t.n && (t.p < p || t.p + t.n > p + n))
		abort();
}

static void body(const char *p, size_t n)
{
	struct chunked c = CHUNKED_INIT;
	auto_buf struct buf b = BUF_INIT(1 << 20);
	while (n && !c.done) {
		ssize_t used = chunked_decode(&c, p, n, &b, 4096);
		if (used <= 0)
			break;
		if ((size_t)used > n || b.len > 4096)
			abort();
		buf_clear(&b);
		p += used;
		n -= (size_t)used;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data;
	struct http_head h;
	struct err e;
	int n = http_head_length(p, size, 0);
	if (n <= 0)
		return 0;
	if ((size_t)n > size)
		abort();
	body(p + n, size - (size_t)n);
	if (http_request_parse(p, (size_t)n, &h, &e) < 0)
		return 0;
	/* What was taken can be neither joined nor repeated in a way that means something else. */
	if (h.target.p[0] != '/' || h.nfields > HTTP_FIELDS || (h.chunked && h.content_length >= 0))
		abort();
	inside(h.method, p, (size_t)n);
	inside(h.target, p, (size_t)n);
	inside(h.host, p, (size_t)n);
	for (size_t i = 0; i < h.nfields; i++) {
		inside(h.fields[i].name, p, (size_t)n);
		inside(h.fields[i].value, p, (size_t)n);
		if (h.fields[i].value.n &&
		        (memchr(h.fields[i].value.p, '\n', h.fields[i].value.n) ||
		                memchr(h.fields[i].value.p, '\0', h.fields[i].value.n)))
			abort();
		(void)http_hop_by_hop(h.fields[i].name, h.fields, h.nfields);
	}
	return 0;
}
