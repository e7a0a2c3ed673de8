/*
 * http1.h - an HTTP/1.1 response, taken apart as its bytes come.
 *
 * Pure: no socket, no clock.  Feed it pieces of any size; of the head some fields
 * are kept and all are told, the body is appended to a buffer of the caller,
 * decoded.  After 101 it stops at the end of the head: what is left belongs to the
 * other protocol.
 */
#ifndef BASE_HTTP1_H
#define BASE_HTTP1_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	HTTP1_LINE = 8 << 10,  /* longest line of the head */
	HTTP1_HEAD = 64 << 10, /* longest head */
	HTTP1_FIELD = 128,     /* longest field kept */
};

enum http1_state {
	HTTP1_STATUS,
	HTTP1_HEADERS,
	HTTP1_SIZED, /* body of Content-Length */
	HTTP1_CHUNK_SIZE,
	HTTP1_CHUNK_DATA,
	HTTP1_CHUNK_END, /* CRLF after the data */
	HTTP1_TRAILERS,
	HTTP1_UNTIL_CLOSE, /* body that ends with the connection */
	HTTP1_DONE,
	HTTP1_UPGRADED, /* 101: the rest is not HTTP */
};

struct http1 {
	enum http1_state state;
	bool head_only; /* set by the caller: answer to HEAD, no body */
	int status;
	bool chunked, sized;
	uint64_t left; /* of the body or chunk */
	size_t head_bytes;
	char content_type[HTTP1_FIELD], upgrade[HTTP1_FIELD];
	int64_t retry_after; /* seconds, -1 when absent */
	struct buf line;     /* owned: the line so far */
	/* Set by the caller, or NULL: told each field of the head, and (NULL, NULL) when those so
	 * far were of an interim answer that another follows.  Negative: refused, with *e. */
	int (*field)(void *ctx, const char *name, const char *value, struct err *e);
	void *ctx;
};

#define HTTP1_INIT                                                                                 \
	{                                                                                          \
		.retry_after = -1, .line = BUF_INIT(HTTP1_LINE)                                    \
	}

void http1_done(struct http1 *h);

/* Takes at most n bytes and appends decoded body to `body`.  Bytes taken: fewer than n only at
 * DONE and UPGRADED.  -EBADMSG for what is not HTTP/1.1, -ENOBUFS for a full `body`. */
MUST_USE ssize_t http1_feed(
        struct http1 *h, const char *p, size_t n, struct buf *body, struct err *e);

/* The connection has ended.  0 when the body may end so, else -ECONNRESET. */
MUST_USE int http1_eof(struct http1 *h, struct err *e);

static inline bool http1_has_head(const struct http1 *h)
{
	return h->state > HTTP1_HEADERS;
}

#endif
