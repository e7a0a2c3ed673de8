#include "egress/http.h"

#include "base/mem.h"

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

/* A dot segment, its dots percent-encoded or not: an upstream might resolve it, and with it
 * leave the prefix that root gave. */
static bool dot_segments(struct http_text path)
{
	for (size_t i = 0; i < path.n;) {
		size_t dots = 0, at = i + 1; /* path.p[i] is '/' */
		while (at < path.n && path.p[at] != '/') {
			bool coded = path.n - at >= 3 && strncasecmp(path.p + at, "%2e", 3) == 0;
			if (path.p[at] != '.' && !coded)
				break;
			dots++;
			at += coded ? 3 : 1;
		}
		if ((dots == 1 || dots == 2) && (at == path.n || path.p[at] == '/'))
			return true;
		while (at < path.n && path.p[at] != '/')
			at++;
		i = at;
	}
	return false;
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
