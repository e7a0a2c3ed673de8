#include "base/http1.h"
#include "tests/t.h"

/* Canned answers, each fed whole and split at every byte: the result must not differ. */
static const struct {
	const char *what, *bytes;
	int status; /* or a negative errno */
	const char *body;
	enum http1_state state; /* before the end of the connection */
	bool closes;            /* the end of the connection ends the body well */
} rows[] = {
        {"a sized body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello",
                HTTP1_DONE, true},
        {"no reason phrase", "HTTP/1.1 204\r\n\r\n", 204, "", HTTP1_DONE, true},
        {"an empty sized body", "HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n", 200, "", HTTP1_DONE,
                true},
        {"chunks",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
                "7;x=y\r\n, world\r\n0\r\n\r\n",
                200, "hello, world", HTTP1_DONE, true},
        {"chunks with trailers",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                "A\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
                200, "0123456789", HTTP1_DONE, true},
        {"a body until close", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it", 200,
                "all of it", HTTP1_UNTIL_CLOSE, true},
        {"100 Continue first",
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\n"
                "Content-Length: 2\r\n\r\n{}",
                202, "{}", HTTP1_DONE, true},
        {"bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", 200, "ok", HTTP1_DONE,
                true},
        {"a body cut short", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", 200, "hello",
                HTTP1_SIZED, false},
        {"chunks cut short", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", 200,
                "hel", HTTP1_CHUNK_DATA, false},
        {"a head cut short", "HTTP/1.1 200 OK\r\nContent-Le", 200, "", HTTP1_HEADERS, false},
        {"chunked wins over a length",
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n"
                "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
                200, "ok", HTTP1_DONE, true},
        {"not HTTP", "SSH-2.0-OpenSSH_9.2\r\n", -EBADMSG, "", HTTP1_STATUS, false},
        {"HTTP/2", "HTTP/2 200\r\n\r\n", -EBADMSG, "", HTTP1_STATUS, false},
        {"no status", "HTTP/1.1 abc\r\n\r\n", -EBADMSG, "", HTTP1_STATUS, false},
        {"an empty status line", "\r\n", -EBADMSG, "", HTTP1_STATUS, false},
        {"a header without name", "HTTP/1.1 200 OK\r\n: x\r\n\r\n", -EBADMSG, "", HTTP1_STATUS,
                false},
        {"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                -EBADMSG, "", HTTP1_STATUS, false},
        {"a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", -EBADMSG, "",
                HTTP1_STATUS, false},
        {"a huge length", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
                -EBADMSG, "", HTTP1_STATUS, false},
        {"a chunk size of letters", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
                -EBADMSG, "", HTTP1_STATUS, false},
        {"a chunk size of control characters",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\022\r\nhi\r\n0\r\n\r\n",
                -EBADMSG, "", HTTP1_STATUS, false},
        {"a chunk longer than it said",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n", -EBADMSG, "",
                HTTP1_STATUS, false},
        {"an unknown encoding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", -EBADMSG, "",
                HTTP1_STATUS, false},
};

/* Feeds p[0..n) in pieces of `step`; the status or the error. */
static int feed(struct http1 *h, const char *p, size_t n, size_t step, struct buf *body)
{
	struct err e = {0};
	for (size_t at = 0; at < n;) {
		size_t k = n - at < step ? n - at : step;
		ssize_t used = http1_feed(h, p + at, k, body, &e);
		if (used < 0)
			return (int)used;
		if ((size_t)used < k)
			break;
		at += k;
	}
	return h->status;
}

static void canned(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = strlen(rows[i].bytes);
		bool same = true;
		for (size_t step = 1; step <= n; step++) {
			struct http1 h = HTTP1_INIT;
			struct buf body = BUF_INIT(1 << 20);
			int r = feed(&h, rows[i].bytes, n, step, &body);
			bool good = r == rows[i].status;
			if (r >= 0)
				good = good && h.state == rows[i].state &&
				       strcmp(body.p ? body.p : "", rows[i].body) == 0 &&
				       (http1_eof(&h, NULL) == 0) == rows[i].closes;
			if (!good)
				printf("# step %zu: %d, state %d, body '%s'\n", step, r, h.state,
				        body.p ? body.p : "");
			same = same && good;
			http1_done(&h);
			buf_done(&body);
		}
		ok(same, "%s, in pieces of every size", rows[i].what);
	}
}

static void upgrade(void)
{
	static const char bytes[] =
	        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: agentbox-stdio\r\n"
	        "Connection: Upgrade\r\n\r\n\1frame";
	for (size_t step = 1; step < sizeof(bytes); step++) {
		struct http1 h = HTTP1_INIT;
		struct buf body = BUF_INIT(64);
		size_t n = sizeof(bytes) - 1, at = 0;
		while (at < n && h.state != HTTP1_UPGRADED) {
			size_t k = n - at < step ? n - at : step;
			ssize_t used = http1_feed(&h, bytes + at, k, &body, NULL);
			if (used < 0)
				break;
			at += (size_t)used;
		}
		bool good = h.state == HTTP1_UPGRADED && at == n - 6 && body.len == 0 &&
		            strcmp(h.upgrade, "agentbox-stdio") == 0;
		if (step == 1 || step == sizeof(bytes) - 1 || !good)
			ok(good, "101 leaves what follows the head, step %zu", step);
		http1_done(&h);
		buf_done(&body);
	}
}

static void fields_and_limits(void)
{
	struct http1 h = HTTP1_INIT;
	struct buf body = BUF_INIT(4);
	struct err e = {0};
	static const char head[] =
	        "HTTP/1.1 429 Slow\r\nContent-Type:  application/problem+json \r\n"
	        "Retry-After: 7\r\nContent-Length: 5\r\n\r\n";
	ok(http1_feed(&h, head, sizeof(head) - 1, &body, &e) == sizeof(head) - 1, "a head");
	is_str(h.content_type, "application/problem+json", "Content-Type without blanks");
	ok(h.retry_after == 7, "Retry-After");
	ok(http1_feed(&h, "hello", 5, &body, &e) == -ENOBUFS, "a body larger than its buffer");
	http1_done(&h);
	buf_done(&body);

	struct http1 endless = HTTP1_INIT;
	char line[1024];
	memset(line, 'a', sizeof(line));
	ssize_t r = 0;
	int rounds = 0;
	for (; r >= 0 && rounds < 100; rounds++)
		r = http1_feed(&endless, line, sizeof(line), &body, &e);
	ok(r == -EBADMSG && rounds <= 9, "an endless status line is refused");
	http1_done(&endless);

	struct http1 many = HTTP1_INIT;
	r = http1_feed(&many, "HTTP/1.1 200 OK\r\n", 17, &body, &e);
	for (rounds = 0; r >= 0 && rounds < 100000; rounds++)
		r = http1_feed(&many, "A: b\r\n", 6, &body, &e);
	ok(r == -EBADMSG && rounds < 20000, "an endless head is refused");
	http1_done(&many);
}

static int note(void *ctx, const char *name, const char *value, struct err *e)
{
	if (value && strcmp(value, "no") == 0)
		return err_set(e, -EBADMSG, "refused");
	return buf_printf(ctx, "%s=%s;", name ? name : "-", value ? value : "-");
}

static void all_fields(void)
{
	static const char head[] = "HTTP/1.1 103 Early\r\nLink: a\r\n\r\n"
	                           "HTTP/1.1 200 OK\r\nA: 1\r\na:\t2 \r\n\r\n";
	static const char *const bad[] = {
	        "HTTP/1.1 200 OK\r\nA: no\r\n", "HTTP/1.1 200 OK\r\nA: b\0c\r\n"};
	auto_buf struct buf seen = BUF_INIT(1000), body = BUF_INIT(10);
	struct err e;
	struct http1 h = HTTP1_INIT;
	h.field = note;
	h.ctx = &seen;
	ok(http1_feed(&h, head, sizeof(head) - 1, &body, &e) == sizeof(head) - 1, "two heads");
	is_str(seen.p, "Link=a;-=-;A=1;a=2;", "each field, and where the interim answer ends");
	http1_done(&h);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct http1 x = HTTP1_INIT;
		x.field = note;
		x.ctx = &seen;
		ok(http1_feed(&x, bad[i], i ? 25 : strlen(bad[i]), &body, &e) == -EBADMSG,
		        "refused: %s", i ? "a NUL" : "by the caller");
		http1_done(&x);
	}
}

int main(void)
{
	canned();
	upgrade();
	fields_and_limits();
	all_fields();
	return done();
}
