#include "base/http_head.h"

#include "base/mem.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

bool http_is(struct http_text t, const char *word)
{
	return strlen(word) == t.n && strncasecmp(t.p, word, t.n) == 0;
}

bool http_token(struct http_text t)
{
	for (size_t i = 0; i < t.n; i++) {
		unsigned char c = (unsigned char)t.p[i];
		if (c >= 0x80 || (!isalnum(c) && (!c || !strchr("!#$%&'*+-.^_`|~", c))))
			return false;
	}
	return t.n > 0;
}

static struct http_text trim(const char *p, size_t n)
{
	while (n && (*p == ' ' || *p == '\t'))
		p++, n--;
	while (n && (p[n - 1] == ' ' || p[n - 1] == '\t'))
		n--;
	return (struct http_text){p, n};
}

bool http_list_has(struct http_text list, const char *word, size_t n)
{
	const char *p = list.p, *end = list.p + list.n;
	while (p < end) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		const char *stop = comma ? comma : end;
		struct http_text item = trim(p, (size_t)(stop - p));
		if (item.n == n && strncasecmp(item.p, word, n) == 0)
			return true;
		p = stop + 1;
	}
	return false;
}

bool http_field_parse(const char *p, size_t n, struct http_field *ret)
{
	const char *colon = n ? memchr(p, ':', n) : NULL;
	if (!colon)
		return false;
	struct http_text name = {p, (size_t)(colon - p)};
	struct http_text value = trim(colon + 1, n - name.n - 1);
	if (!http_token(name))
		return false;
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	ret->name = name;
	ret->value = value;
	return true;
}

int http_head_length(const char *p, size_t n, size_t from)
{
	from = from > 3 ? from - 3 : 0;
	const char *end = n > from ? memmem(p + from, n - from, "\r\n\r\n", 4) : NULL;
	size_t len = end ? (size_t)(end - p) + 4 : n;
	if (len > HTTP_HEAD_MAX)
		return -E2BIG;
	return end ? (int)len : 0;
}

static int check_target(struct http_text t, struct err *e)
{
	if (t.n == 0)
		return err_set(e, -EINVAL, "the request target is empty");
	for (size_t i = 0; i < t.n; i++) {
		unsigned char c = (unsigned char)t.p[i];
		if (c <= 0x20 || c >= 0x7f || c == '#' || c == '\\')
			return err_set(e, -EINVAL, "the request target has a forbidden character");
	}
	return 0;
}

static int parse_request_line(struct http_text line, struct http_head *h, struct err *e)
{
	const char *a = memchr(line.p, ' ', line.n);
	const char *b = a ? memchr(a + 1, ' ', line.n - (size_t)(a + 1 - line.p)) : NULL;
	if (!b)
		return err_set(e, -EINVAL, "the request line is not 'METHOD target HTTP/1.1'");
	h->method = (struct http_text){line.p, (size_t)(a - line.p)};
	h->target = (struct http_text){a + 1, (size_t)(b - a - 1)};
	struct http_text version = {b + 1, line.n - (size_t)(b + 1 - line.p)};
	if (!http_token(h->method) || h->method.n >= HTTP_METHOD_MAX)
		return err_set(e, -EINVAL, "the request method is malformed");
	if (version.n != 8 || memcmp(version.p, "HTTP/", 5) != 0 || version.p[6] != '.')
		return err_set(e, -EINVAL, "the request line does not end with an HTTP version");
	if (version.p[5] == '2')
		return err_set(e, -EACCES, "HTTP/2 with prior knowledge is not served here");
	if (memcmp(version.p + 5, "1.", 2) != 0 || (version.p[7] != '0' && version.p[7] != '1'))
		return err_set(e, -EPROTONOSUPPORT, "only HTTP/1.0 and HTTP/1.1 are served");
	h->minor = version.p[7] - '0';
	h->keep_alive = h->minor == 1;
	return check_target(h->target, e);
}

static int take_length(struct http_head *h, struct http_text v, struct err *e)
{
	if (h->content_length >= 0)
		return err_set(e, -EINVAL, "more than one Content-Length field");
	if (v.n == 0 || v.n > 15) /* 15 digits: no overflow below, and far beyond any body */
		return err_set(e, -EINVAL, "Content-Length is empty or too large");
	int64_t n = 0;
	for (size_t i = 0; i < v.n; i++) {
		if (!isdigit((unsigned char)v.p[i]))
			return err_set(e, -EINVAL, "Content-Length is not a number");
		n = n * 10 + (v.p[i] - '0');
	}
	h->content_length = n;
	return 0;
}

static int take_field(struct http_head *h, const struct http_field *f, struct err *e)
{
	if (http_is(f->name, "host")) {
		if (h->host.p)
			return err_set(e, -EINVAL, "more than one Host field");
		h->host = f->value;
		return 0;
	}
	if (http_is(f->name, "content-length"))
		return take_length(h, f->value, e);
	if (http_is(f->name, "transfer-encoding")) {
		if (h->chunked || h->minor == 0)
			return err_set(e, -EINVAL, "Transfer-Encoding twice, or in HTTP/1.0");
		if (!http_is(f->value, "chunked"))
			return err_set(e, -EOPNOTSUPP, "only Transfer-Encoding: chunked is served");
		h->chunked = true;
	} else if (http_is(f->name, "expect")) {
		if (!http_is(f->value, "100-continue"))
			return err_set(e, -EOPNOTSUPP, "only Expect: 100-continue is served");
		h->expect_continue = h->minor == 1;
	} else if (http_is(f->name, "connection")) {
		if (http_list_has(f->value, "close", 5))
			h->keep_alive = false;
		else if (h->minor == 0 && http_list_has(f->value, "keep-alive", 10))
			h->keep_alive = true;
	} else if (http_is(f->name, "upgrade")) {
		h->upgrade = true;
	}
	return 0;
}

/* The next line of p[n], without its end.  A carriage return or line feed that is not part of
 * CR LF is malformed; so is NUL. */
static bool next_line(const char **p, size_t *n, struct http_text *ret)
{
	const char *lf = memchr(*p, '\n', *n);
	if (!lf || lf == *p || lf[-1] != '\r')
		return false;
	*ret = (struct http_text){*p, (size_t)(lf - *p) - 1};
	*n -= (size_t)(lf - *p) + 1;
	*p = lf + 1;
	return !memchr(ret->p, '\r', ret->n) && !memchr(ret->p, '\0', ret->n);
}

static int finish(struct http_head *h, struct err *e)
{
	if (!h->host.p && h->minor > 0)
		return err_set(e, -EINVAL, "no Host field");
	if (h->chunked && h->content_length >= 0)
		return err_set(e, -EINVAL, "Content-Length and Transfer-Encoding together");
	return 0;
}

int http_head_parse(const char *p, size_t n, struct http_head *ret, struct err *e)
{
	struct http_text line;
	ret->host = (struct http_text){NULL, 0};
	ret->port = 0;
	ret->expect_continue = ret->upgrade = ret->chunked = false;
	ret->content_length = -1;
	ret->nfields = 0;
	if (!next_line(&p, &n, &line))
		return err_set(e, -EINVAL, "the request line does not end with CR LF");
	int r = parse_request_line(line, ret, e);
	while (r == 0) {
		if (!next_line(&p, &n, &line))
			return err_set(e, -EINVAL, "a header line does not end with CR LF");
		if (line.n == 0)
			return n == 0 ? finish(ret, e)
			              : err_set(e, -EINVAL, "bytes after the end of the head");
		if (line.p[0] == ' ' || line.p[0] == '\t')
			return err_set(e, -EINVAL, "folded header lines are refused");
		if (ret->nfields == HTTP_FIELDS)
			return err_set(e, -E2BIG, "more than %d header fields", HTTP_FIELDS);
		struct http_field *f = &ret->fields[ret->nfields];
		if (!http_field_parse(line.p, line.n, f))
			return err_set(
			        e, -EINVAL, "header field %zu is malformed", ret->nfields + 1);
		ret->nfields++;
		r = take_field(ret, f, e);
	}
	return r;
}

int http_head_host(struct http_head *h, struct err *e)
{
	struct http_text v = h->host;
	const char *colon = v.n ? memchr(v.p, ':', v.n) : NULL;
	size_t n = colon ? (size_t)(colon - v.p) : v.n;
	h->port = HTTP_NO_PORT;
	if (colon) {
		size_t digits = v.n - n - 1;
		h->port = 0;
		for (size_t i = 0; i < digits && digits <= 5; i++) {
			if (!isdigit((unsigned char)colon[1 + i]))
				return err_set(
				        e, -EINVAL, "the port of the Host field is malformed");
			h->port = h->port * 10 + (colon[1 + i] - '0');
		}
	}
	if (n && v.p[n - 1] == '.') /* the root's dot */
		n--;
	h->host = (struct http_text){v.p, n};
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)v.p[i]) && !strchr("-._", v.p[i]))
			return err_set(e, -EINVAL, "the Host field is not a host name");
	return n ? 0 : err_set(e, -EINVAL, "the Host field is empty");
}
