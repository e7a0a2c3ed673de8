#include "base/http1.h"
#include "base/mem.h"

#include <string.h>
#include <strings.h>

void http1_done(struct http1 *h)
{
	buf_done(&h->line);
}

/* Takes bytes up to and with the new line.  1 when `line` is whole (without CR LF). */
static int take_line(struct http1 *h, const char **p, const char *end, struct err *e)
{
	const char *nl = memchr(*p, '\n', (size_t)(end - *p));
	size_t n = (size_t)((nl ? nl : end) - *p);
	if (buf_put(&h->line, *p, n) < 0)
		return err_set(
		        e, -EBADMSG, "the answer has a line of more than %d bytes", HTTP1_LINE);
	h->head_bytes += n;
	if (h->head_bytes > HTTP1_HEAD)
		return err_set(
		        e, -EBADMSG, "the answer's head is larger than %d bytes", HTTP1_HEAD);
	*p = nl ? nl + 1 : end;
	if (!nl)
		return 0;
	if (h->line.len && h->line.p[h->line.len - 1] == '\r')
		h->line.p[--h->line.len] = '\0';
	return 1;
}

static bool digits(const char *s, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;
	/* 18 digits cannot overflow 64 bits. */
	for (; i < 18 && s[i] >= '0' && s[i] <= '9'; i++)
		v = v * 10 + (uint64_t)(s[i] - '0');
	*ret = v;
	return i > 0 && s[i] == '\0';
}

static int status_line(struct http1 *h, struct err *e)
{
	const char *s = h->line.p ? h->line.p : "";
	if (strncmp(s, "HTTP/1.", 7) != 0 || !s[7] || s[8] != ' ')
		return err_set(e, -EBADMSG, "what answers does not speak HTTP/1.1");
	int status = 0;
	for (int i = 9; i < 12; i++) {
		if (s[i] < '0' || s[i] > '9')
			return err_set(e, -EBADMSG, "the answer has no status");
		status = status * 10 + (s[i] - '0');
	}
	if (status < 100 || (s[12] != ' ' && s[12] != '\0'))
		return err_set(e, -EBADMSG, "the answer has no status");
	h->status = status;
	h->state = HTTP1_HEADERS;
	return 0;
}

static int header_line(struct http1 *h, struct err *e)
{
	char *name = h->line.p, *colon = strchr(name, ':');
	if (!colon || colon == name)
		return err_set(e, -EBADMSG, "the answer has a header without a name");
	*colon = '\0';
	char *value = colon + 1 + strspn(colon + 1, " \t");
	size_t n = strlen(value);
	while (n && (value[n - 1] == ' ' || value[n - 1] == '\t'))
		value[--n] = '\0';
	uint64_t number = 0;
	if (strcasecmp(name, "Content-Length") == 0) {
		if (!digits(value, &number) || (h->sized && number != h->left))
			return err_set(e, -EBADMSG, "the answer has an invalid Content-Length");
		h->sized = true;
		h->left = number;
	} else if (strcasecmp(name, "Transfer-Encoding") == 0) {
		if (strcasecmp(value, "chunked") != 0)
			return err_set(e, -EBADMSG, "the answer has an unknown transfer encoding");
		h->chunked = true;
	} else if (strcasecmp(name, "Content-Type") == 0) {
		(void)str_copy(h->content_type, sizeof(h->content_type), value); /* cut is fine */
	} else if (strcasecmp(name, "Upgrade") == 0) {
		(void)str_copy(h->upgrade, sizeof(h->upgrade), value);
	} else if (strcasecmp(name, "Retry-After") == 0 && digits(value, &number)) {
		h->retry_after = (int64_t)number;
	}
	return h->field ? h->field(h->ctx, name, value, e) : 0;
}

/* The blank line: what comes next? */
static int head_over(struct http1 *h, struct err *e)
{
	if (h->status == 101)
		h->state = HTTP1_UPGRADED;
	else if (h->status < 200) { /* 100 Continue and its like: another head follows */
		h->sized = h->chunked = false;
		h->left = 0;
		h->state = HTTP1_STATUS;
		return h->field ? h->field(h->ctx, NULL, NULL, e) : 0;
	} else if (h->head_only || h->status == 204 || h->status == 304)
		h->state = HTTP1_DONE;
	else if (h->chunked)
		h->state = HTTP1_CHUNK_SIZE;
	else if (!h->sized)
		h->state = HTTP1_UNTIL_CLOSE;
	else
		h->state = h->left ? HTTP1_SIZED : HTTP1_DONE;
	return 0;
}

static int chunk_size(struct http1 *h, struct err *e)
{
	const char *s = h->line.p;
	uint64_t v = 0;
	size_t i = 0;
	for (; i < 15; i++) {
		static const char hex[] = "0123456789abcdefABCDEF";
		const char *at = s[i] ? strchr(hex, s[i]) : NULL;
		if (!at)
			break;
		v = v << 4 | (uint64_t)(at - hex < 16 ? at - hex : at - hex - 6);
	}
	if (i == 0 || (s[i] && s[i] != ';' && s[i] != ' '))
		return err_set(e, -EBADMSG, "the answer has an invalid chunk size");
	h->left = v;
	h->state = v ? HTTP1_CHUNK_DATA : HTTP1_TRAILERS;
	return 0;
}

static int handle_line(struct http1 *h, struct err *e)
{
	int r = 0;
	bool blank = h->line.len == 0;
	if (!blank && memchr(h->line.p, '\0', h->line.len))
		r = err_set(e, -EBADMSG, "the answer has a line with a NUL");
	else if (h->state == HTTP1_STATUS)
		r = status_line(h, e);
	else if (h->state == HTTP1_HEADERS && !blank)
		r = header_line(h, e);
	else if (h->state == HTTP1_HEADERS)
		r = head_over(h, e);
	else if (h->state == HTTP1_CHUNK_SIZE)
		r = blank ? err_set(e, -EBADMSG, "the answer has an empty chunk size")
		          : chunk_size(h, e);
	else if (h->state == HTTP1_CHUNK_END && !blank)
		r = err_set(e, -EBADMSG, "a chunk of the answer is longer than it said");
	else if (h->state == HTTP1_CHUNK_END)
		h->state = HTTP1_CHUNK_SIZE;
	else if (blank) /* trailers */
		h->state = HTTP1_DONE;
	if (h->state > HTTP1_HEADERS && h->state != HTTP1_TRAILERS)
		h->head_bytes = 0; /* chunk lines are limited one by one */
	buf_clear(&h->line);
	return r;
}

static int take_body(
        struct http1 *h, const char **p, const char *end, struct buf *body, struct err *e)
{
	size_t n = (size_t)(end - *p);
	if (h->state != HTTP1_UNTIL_CLOSE && n > h->left)
		n = (size_t)h->left;
	int r = buf_put(body, *p, n);
	if (r < 0)
		return err_set(e, r, "the answer is larger than %zu bytes", body->limit);
	*p += n;
	if (h->state == HTTP1_UNTIL_CLOSE)
		return 0;
	h->left -= n;
	if (h->left == 0)
		h->state = h->state == HTTP1_SIZED ? HTTP1_DONE : HTTP1_CHUNK_END;
	return 0;
}

static bool in_body(const struct http1 *h)
{
	return h->state == HTTP1_SIZED || h->state == HTTP1_CHUNK_DATA ||
	       h->state == HTTP1_UNTIL_CLOSE;
}

ssize_t http1_feed(struct http1 *h, const char *p, size_t n, struct buf *body, struct err *e)
{
	const char *at = p, *end = p + n;
	while (at < end && h->state != HTTP1_DONE && h->state != HTTP1_UPGRADED) {
		int r;
		if (in_body(h)) {
			r = take_body(h, &at, end, body, e);
		} else {
			r = take_line(h, &at, end, e);
			if (r > 0)
				r = handle_line(h, e);
		}
		if (r < 0)
			return r;
	}
	return at - p;
}

int http1_eof(struct http1 *h, struct err *e)
{
	if (h->state == HTTP1_UNTIL_CLOSE)
		h->state = HTTP1_DONE;
	if (h->state == HTTP1_DONE || h->state == HTTP1_UPGRADED)
		return 0;
	return err_set(e, -ECONNRESET, "the connection ended in the middle of the answer");
}
