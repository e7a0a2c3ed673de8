#include "egress/proxy_conn.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "egress/client.h"
#include "egress/http.h"
#include "egress/http_answer.h"
#include "egress/jails.h"
#include "egress/place.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

struct proxy_conn {
	struct client client;
	proxy_arrive_fn *arrive;
	struct buf in;
	size_t searched;
	char host[POLICY_HOST_MAX]; /* that was asked for; "" until then */
	unsigned port;
	enum egress_remedy remedy; /* of a refusal */
};

/* The answer fits any socket buffer; who does not take it has the event. */
static void refuse(struct proxy_conn *c, int status, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

static void refuse(struct proxy_conn *c, int status, const char *fmt, ...)
{
	char reason[128];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	auto_buf struct buf out = BUF_INIT(8192);
	http_answer(&out, status, reason);
	const struct report_of what = {.host = c->host[0] ? c->host : POLICY_PROXY_NAME,
	        .port = c->host[0] ? c->port : POLICY_PROXY_PORT,
	        .protocol = EGRESS_PROTOCOL_TCP,
	        .remedy = c->remedy,
	        .policy = &c->client.jail->names.book->policy,
	        .rule = -1};
	report_denied(&c->client.jail->report, &what, reason);
	(void)!send(c->client.fd, out.p, out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	client_end(&c->client, false);
}

static bool host_char(char c, bool bracketed)
{
	return c > ' ' && c < 0x7f && !strchr(bracketed ? "/@?#[]\\\"" : "/@?#[]\\\":", c);
}

/* HOST[:PORT] or [ADDRESS][:PORT] into c->host and c->port. */
static bool set_authority(struct proxy_conn *c, const char *p, size_t n, unsigned dflt)
{
	const char *end = n && *p == '[' ? memchr(p, ']', n) : NULL;
	bool bracketed = end != NULL;
	const char *host = p + bracketed;
	const char *rest = bracketed ? end + 1 : memchr(p, ':', n);
	size_t len = bracketed ? (size_t)(end - host) : rest ? (size_t)(rest - p) : n;
	size_t k = rest ? n - (size_t)(rest - p) : 0; /* of ":PORT" */
	char digits[6] = "";
	c->port = dflt;
	if (k) {
		if (*rest != ':' || k < 2 || k > sizeof(digits) ||
		        strspn(rest + 1, "0123456789") < k - 1)
			return false;
		memcpy(digits, rest + 1, k - 1);
		c->port = (unsigned)strtoul(digits, NULL, 10);
	}
	if (len && host[len - 1] == '.')
		len--;
	if (len == 0 || len >= sizeof(c->host) || c->port < 1 || c->port > 65535)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!host_char(host[i], bracketed))
			return false;
	memcpy(c->host, host, len);
	c->host[len] = '\0';
	return true;
}

/* Does anything answer there?  Who it is for is judged again by what comes. */
static bool served(const struct proxy_conn *c, const struct place *p)
{
	const struct names *t = &c->client.jail->names;
	struct name_ref at = p->has_v4 ? names_at(t, p->v4) : (struct name_ref){.kind = NAME_NONE};
	if (t->why_none[0])
		return false;
	if (at.kind == NAME_INJECT)
		return p->port == 80;
	if (at.kind == NAME_RULE)
		return names_rule(t, at.host, strlen(at.host), p->port) >= 0;
	return at.kind == NAME_NONE && names_number(t, p->mapped, p->port) >= 0;
}

/* What would have been dialled: the name's address in this jail, or the number that was written. */
static bool find_place(struct proxy_conn *c, struct place *ret)
{
	struct names *t = &c->client.jail->names;
	struct cidr number;
	char reason[128], asked[POLICY_HOST_MAX + 8];
	uint32_t address;
	int r = 0;
	if (cidr_parse(c->host, &number) && !strchr(c->host, '/'))
		place_mapped(number.bytes, c->port, ret);
	else if ((r = names_address(t, c->host, strlen(c->host), &address)) == 0)
		place_v4(address, c->port, ret);
	if (r == 0 && served(c, ret))
		return true;
	snprintf(asked, sizeof(asked), r == 0 ? "%s:%u" : "%s", c->host, c->port);
	if (r != -ENOSPC)
		c->remedy = names_remedy(t);
	names_refusal(t, "proxy", asked, reason, sizeof(reason));
	refuse(c, 403, "%s", reason);
	return false;
}

/* The connection goes on as if it had been made to `p`. */
static void pass_on(struct proxy_conn *c, const struct place *p, const struct buf *bytes)
{
	struct jail *j = c->client.jail;
	int fd = client_release(&c->client);
	if (fd >= 0)
		c->arrive(j, fd, p, bytes ? bytes->p : NULL, bytes ? bytes->len : 0);
}

static void tunnel(struct proxy_conn *c, struct http_text target, size_t head)
{
	static const char yes[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	struct place p;
	if (!set_authority(c, target.p, target.n, 443))
		refuse(c, 400, "proxy: CONNECT without HOST:PORT");
	else if (c->in.len != head)
		refuse(c, 400, "proxy: bytes before CONNECT was answered");
	else if (find_place(c, &p)) {
		if (send(c->client.fd, yes, sizeof(yes) - 1, MSG_NOSIGNAL) != sizeof(yes) - 1)
			client_end(&c->client, true);
		else
			pass_on(c, &p, NULL);
	}
}

static bool field_is(const char *line, size_t n, const char *name)
{
	size_t len = strlen(name);
	return n > len && line[len] == ':' && strncasecmp(line, name, len) == 0;
}

/* The head with an origin-form target and without what was meant for us, ending its connection, so
 * that the next request is a new one with a host of its own. */
static void rewrite(const struct proxy_conn *c, struct http_text method, const char *path,
        const char *rest, size_t head, struct buf *out)
{
	const char *line_end = memchr(path, ' ', (size_t)(rest - path));
	buf_put(out, method.p, method.n);
	buf_puts(out, *path == '/' ? " " : " /");
	buf_put(out, path, (size_t)(line_end - path));
	buf_put(out, line_end, (size_t)(rest - line_end));
	for (const char *end = c->in.p + head, *p = rest, *lf; p < end; p = lf + 1) {
		lf = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)(lf - p) + 1;
		if (n <= 2)
			buf_puts(out, "Connection: close\r\n");
		if (!field_is(p, n, "proxy-connection") && !field_is(p, n, "proxy-authorization") &&
		        !field_is(p, n, "connection"))
			buf_put(out, p, n);
	}
	buf_put(out, c->in.p + head, c->in.len - head);
}

static void request(struct proxy_conn *c, struct http_text method, struct http_text target,
        const char *rest, size_t head)
{
	auto_buf struct buf out = BUF_INIT(HTTP_HEAD_MAX + 4096);
	const char *authority = target.p + 7;
	size_t n = strcspn(authority, "/? ");
	struct place p;
	if (target.n < 8 || strncasecmp(target.p, "http://", 7) != 0) {
		refuse(c, 400, "proxy: a request is CONNECT HOST:PORT or METHOD http://HOST/");
		return;
	}
	if (!set_authority(c, authority, n, 80)) {
		refuse(c, 400, "proxy: the request's host is malformed");
		return;
	}
	if (!find_place(c, &p))
		return;
	rewrite(c, method, authority + n, rest, head, &out);
	if (out.failed)
		refuse(c, 431, "proxy: the request head is longer than %d bytes", HTTP_HEAD_MAX);
	else
		pass_on(c, &p, &out);
}

static void take_head(struct proxy_conn *c, size_t head)
{
	const char *p = c->in.p, *lf = memchr(p, '\n', head);
	const char *a = memchr(p, ' ', (size_t)(lf - p));
	const char *b = a ? memchr(a + 1, ' ', (size_t)(lf - a - 1)) : NULL;
	if (!b || memchr(p, '\0', head)) {
		refuse(c, 400, "proxy: not an HTTP request");
		return;
	}
	struct http_text method = {p, (size_t)(a - p)}, target = {a + 1, (size_t)(b - a) - 1};
	if (http_is(method, "CONNECT"))
		tunnel(c, target, head);
	else
		request(c, method, target, lf + 1, head);
}

static void on_ready(struct client *client, uint32_t events)
{
	struct proxy_conn *c = container_of(client, struct proxy_conn, client);
	char bytes[4096];
	(void)events;
	ssize_t n = recv(client->fd, bytes, sizeof(bytes), 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_end(client, n < 0);
		return;
	}
	int head = buf_put(&c->in, bytes, (size_t)n);
	if (head == 0 && !isalpha((unsigned char)c->in.p[0])) {
		refuse(c, 400, "proxy: not an HTTP request");
		return;
	}
	if (head == 0)
		head = http_head_length(c->in.p, c->in.len, c->searched);
	c->searched = c->in.len;
	if (head < 0)
		refuse(c, 431, "proxy: the request head is longer than %d bytes", HTTP_HEAD_MAX);
	else if (head > 0)
		take_head(c, (size_t)head);
}

static void on_late(struct client *client)
{
	struct proxy_conn *c = container_of(client, struct proxy_conn, client);
	refuse(c, 408, "proxy: the request head did not arrive in time");
}

static void on_free(struct client *client)
{
	struct proxy_conn *c = container_of(client, struct proxy_conn, client);
	buf_done(&c->in);
	free(c);
}

static const struct client_kind kind = {.ready = on_ready, .late = on_late, .free = on_free};

void proxy_conn_accept(struct jail *j, int fd, proxy_arrive_fn *arrive)
{
	struct proxy_conn *c = xnew(struct proxy_conn);
	c->arrive = arrive;
	c->in = (struct buf)BUF_INIT(HTTP_HEAD_MAX + 4096);
	client_begin(&c->client, &kind, j, fd, EPOLLIN, PROXY_HEAD_MS);
}
