#include "egress/http.h"

#include "base/mem.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool http_hop_by_hop(struct http_text name, const struct http_field *fields, size_t n)
{
	static const char *const always[] = {"connection", "keep-alive", "proxy-connection",
	        "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
	        "upgrade", "http2-settings"};
	for (size_t i = 0; i < ARRAY_LEN(always); i++)
		if (http_is(name, always[i]))
			return true;
	for (size_t i = 0; i < n; i++)
		if (http_is(fields[i].name, "connection") &&
		        http_list_has(fields[i].value, name.p, name.n))
			return true;
	return false;
}

/* The character at p, percent-encoded or not, and how many bytes that takes. */
static char decoded(const char *p, size_t n, size_t *ret_width)
{
	char two[3] = "", *end = two;
	if (*p == '%' && n >= 3)
		memcpy(two, p + 1, 2);
	unsigned long c = strtoul(two, &end, 16);
	bool coded = isxdigit((unsigned char)two[0]) && end == two + 2;
	*ret_width = coded ? 3 : 1;
	return coded ? (char)c : *p;
}

/* A dot segment, whatever of it is percent-encoded: an upstream might resolve it, and with it
 * leave the prefix that root gave.  What ends a segment for some server ends it here: a backslash,
 * parameters, NUL. */
static bool dot_segments(struct http_text path)
{
	int dots = -1; /* of the segment so far; -1: it has something else */
	for (size_t i = 0, width; i < path.n; i += width) {
		char c = decoded(path.p + i, path.n - i, &width);
		bool separates = c == '/' || c == '\\';
		if ((separates || c == ';' || c == '\0') && (dots == 1 || dots == 2))
			return true;
		dots = separates ? 0 : c == '.' && dots >= 0 ? dots + 1 : -1;
	}
	return dots == 1 || dots == 2;
}

static int check_target(struct http_text t, struct err *e)
{
	if (t.p[0] != '/')
		return err_set(
		        e, -EACCES, "only origin-form targets are served: this is not a proxy");
	const char *query = memchr(t.p, '?', t.n);
	if (dot_segments((struct http_text){t.p, query ? (size_t)(query - t.p) : t.n}))
		return err_set(e, -EINVAL, "the request target has dot segments");
	return 0;
}

int http_request_parse(const char *p, size_t n, struct http_head *ret, struct err *e)
{
	int r = http_head_parse(p, n, ret, e);
	if (r < 0)
		return r;
	if (http_is(ret->method, "CONNECT"))
		return err_set(e, -EACCES, "CONNECT is refused: this is not a proxy");
	r = check_target(ret->target, e);
	if (r < 0)
		return r;
	return ret->host.p ? http_head_host(ret, e) : err_set(e, -EINVAL, "no Host field");
}
