/*
 * http_answer.c - the bytes of an answer: its head, its body, the blocks of a
 * stream in their frames.  http_conn.c sends them.
 */
#include "supervisor/http_private.h"

#include "base/mem.h"

#include <string.h>

enum {
	STREAM_BLOCK = 32 << 10,
	/* A chunk's frame: four digits and a line's end, another behind it. */
	CHUNK_HEAD = 6,
};

static const char *phrase(int status)
{
	static const struct {
		int status;
		const char *text;
	} all[] = {
	        {101, "Switching Protocols"},
	        {200, "OK"},
	        {201, "Created"},
	        {202, "Accepted"},
	        {204, "No Content"},
	        {206, "Partial Content"},
	        {301, "Moved Permanently"},
	        {302, "Found"},
	        {304, "Not Modified"},
	        {307, "Temporary Redirect"},
	        {400, "Bad Request"},
	        {401, "Unauthorized"},
	        {403, "Forbidden"},
	        {404, "Not Found"},
	        {405, "Method Not Allowed"},
	        {409, "Conflict"},
	        {413, "Content Too Large"},
	        {414, "URI Too Long"},
	        {416, "Range Not Satisfiable"},
	        {422, "Unprocessable Content"},
	        {426, "Upgrade Required"},
	        {429, "Too Many Requests"},
	        {431, "Request Header Fields Too Large"},
	        {500, "Internal Server Error"},
	        {501, "Not Implemented"},
	        {502, "Bad Gateway"},
	        {503, "Service Unavailable"},
	        {505, "HTTP Version Not Supported"},
	        {507, "Insufficient Storage"},
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i].status == status)
			return all[i].text;
	return ""; /* allowed, and what a newer status gets that is not yet in the table */
}

void http_answer_begin(struct http_conn *c)
{
	struct http_request *r = c->request;
	struct buf *to = &c->out;
	bool chunked = r->streams && r->stream_left < 0 && !r->old;
	/* Nothing but the end of the connection tells an old client the end of such an answer. */
	c->last |= r->streams && r->stream_left < 0 && r->old;
	buf_printf(to, "HTTP/1.1 %d %s\r\nDate: %s\r\n", r->status, phrase(r->status),
	        http_date(c->http));
	for (size_t i = 0; i < r->nheaders; i++)
		buf_printf(to, "%s: %s\r\n", r->headers[i].name, r->headers[i].value);
	if (chunked)
		buf_puts(to, "Transfer-Encoding: chunked\r\n");
	else if (r->streams && r->stream_left >= 0)
		buf_printf(to, "Content-Length: %lld\r\n", (long long)r->stream_left);
	else if (!r->streams && r->status != 204 && r->status != 304 && !r->start)
		buf_printf(to, "Content-Length: %zu\r\n", r->reply.len);
	if (r->start)
		buf_puts(to, "Connection: Upgrade\r\n");
	else if (c->last)
		buf_puts(to, "Connection: close\r\n");
	else if (r->old)
		buf_puts(to, "Connection: keep-alive\r\n");
	buf_puts(to, "\r\n");
	r->chunked = chunked;
	if (http_request_is_head(r)) {
		r->source_over = true;
		r->chunked = false;
		r->stream_left = 0;
		buf_done(&r->reply);
	}
}

/* Around n bytes that stand CHUNK_HEAD behind p. */
static const char *frame(char *p, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	for (int i = 0; i < 4; i++)
		p[i] = digits[n >> (12 - 4 * i) & 15];
	p[4] = p[CHUNK_HEAD + n] = '\r';
	p[5] = p[CHUNK_HEAD + n + 1] = '\n';
	return p;
}

/* The next block of a stream, framed: its bytes, 0: none now, -1: to be cut. */
static ssize_t next_block(struct http_conn *c, const char **ret)
{
	struct http_request *r = c->request;
	static const char last[] = "0\r\n\r\n";
	char *p = c->http->scratch + CHUNK_HEAD;
	size_t max = STREAM_BLOCK;
	*ret = p;
	if (r->source_over)
		return 0;
	if (r->stream_left >= 0 && (uint64_t)r->stream_left < max)
		max = (size_t)r->stream_left;
	ssize_t n = max ? r->source.pull(r->source.ctx, p, max) : HTTP_END;
	if (n == HTTP_WAIT)
		return 0;
	r->source_over = n == HTTP_END;
	if (n == HTTP_ABORT || (n == HTTP_END && r->stream_left > 0))
		return -1;
	if (n == HTTP_END) {
		*ret = last;
		return r->chunked ? sizeof(last) - 1 : 0;
	}
	if (r->stream_left >= 0)
		r->stream_left -= n;
	if (!r->chunked)
		return n;
	*ret = frame(c->http->scratch, (size_t)n);
	return n + CHUNK_HEAD + 2;
}

ssize_t http_answer_more(struct http_conn *c, const char **ret)
{
	struct http_request *r = c->request;
	if (r->streams)
		return c->out.len - c->sent <= HTTP_OUT_LOW ? next_block(c, ret) : 0;
	*ret = r->reply.p + r->reply_sent;
	return (ssize_t)(r->reply.len - r->reply_sent);
}

bool http_answer_all_sent(const struct http_conn *c)
{
	const struct http_request *r = c->request;
	return c->out.len == c->sent &&
	       (r->streams ? r->source_over : r->reply_sent == r->reply.len);
}

ssize_t http_give(const struct buf *out, size_t *sent, char *p, size_t max)
{
	size_t left = out->len - *sent, n = left < max ? left : max;
	if (n)
		memcpy(p, out->p + *sent, n);
	*sent += n;
	return (ssize_t)n;
}
