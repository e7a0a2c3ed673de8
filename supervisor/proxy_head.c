#include "supervisor/proxy_head.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PREFIX_MAX = 128 };

static const char token[] = "!#$%&'*+-.^_`|~0123456789"
                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* ---- names ---- */

bool proxy_by_name(const char *host, struct proxy_target *ret)
{
	static const char ses[] = "ses_";
	size_t digits = host ? strspn(host, "0123456789") : 0;
	if (digits < 1 || digits > 5 || strncmp(host + digits, "--", 2) != 0)
		return false;
	const char *id = host + digits + 2;
	size_t n = strcspn(id, ".:");
	if (id[n] != '.' || n >= ID_MAX || n <= strlen(ses))
		return false;
	*ret = (struct proxy_target){.form = PROXY_BY_NAME};
	for (size_t i = 0; i < n; i++) /* names know no case */
		ret->session[i] = (char)(id[i] >= 'A' && id[i] <= 'Z' ? id[i] + 32 : id[i]);
	if (ret->session[strlen(ses) - 1] == '-')
		ret->session[strlen(ses) - 1] = '_';
	ret->port = (unsigned)strtoul(host, NULL, 10);
	return id_valid(ret->session, "ses") && ret->port >= 1 && ret->port <= 65535;
}

/* ---- pages ---- */

const char *proxy_no_page(const struct proxy_page *p)
{
	if (p->origin || (p->site && strcasecmp(p->site, "none") != 0))
		return "web pages may not ask for this: it would be for whoever wrote the page";
	return NULL;
}

static bool navigation(const struct proxy_page *p)
{
	return p->mode && strcasecmp(p->mode, "navigate") == 0 &&
	       (strcmp(p->method, "GET") == 0 || strcmp(p->method, "HEAD") == 0);
}

const char *proxy_own_page(const struct proxy_page *p)
{
	static const char why[] = "pages of other origins may not ask for this";
	if (p->origin) {
		const char *at = strstr(p->origin, "://");
		return at && p->host && strcasecmp(at + 3, p->host) == 0 ? NULL : why;
	}
	if (!p->site || strcasecmp(p->site, "none") == 0 || strcasecmp(p->site, "same-origin") == 0)
		return NULL;
	return navigation(p) ? NULL : why; /* a link that was followed */
}

/* ---- fields ---- */

void proxy_fields_done(struct proxy_fields *f)
{
	buf_done(&f->text);
	buf_done(&f->connection);
}

void proxy_fields_clear(struct proxy_fields *f)
{
	buf_clear(&f->text);
	buf_clear(&f->connection);
	f->n = 0;
}

static bool value_fine(const char *value)
{
	for (const unsigned char *p = (const unsigned char *)value; *p; p++)
		if ((*p < 0x20 && *p != '\t') || *p == 0x7f)
			return false;
	return true;
}

int proxy_fields_add(struct proxy_fields *f, const char *name, const char *value)
{
	size_t n = strlen(name);
	if (n == 0 || strspn(name, token) != n || !value_fine(value))
		return -EBADMSG;
	if (++f->n > PROXY_FIELDS)
		return -ENOBUFS;
	buf_put(&f->text, name, n + 1);
	buf_put(&f->text, value, strlen(value) + 1);
	if (strcasecmp(name, "Connection") == 0)
		buf_printf(&f->connection, "%s,", value);
	return f->text.failed ? f->text.failed : f->connection.failed;
}

/* Is the name one of a list's, which is separated by commas and blanks? */
static bool named(const char *list, const char *name)
{
	size_t len = strlen(name);
	for (const char *p = list ? list : ""; *p;) {
		p += strspn(p, ", \t");
		size_t n = strcspn(p, ", \t");
		if (n == len && n > 0 && strncasecmp(p, name, n) == 0)
			return true;
		p += n;
	}
	return false;
}

/* Between two neighbours only, or said anew by us. */
static const char hop[] = "Connection, Keep-Alive, Proxy-Connection, Proxy-Authenticate, "
                          "Proxy-Authorization, TE, Trailer, Transfer-Encoding, Upgrade";

/* ---- into the jail ---- */

/* What a client sends to the origin of the API, or to a server in front of it, is not the jail's to
 * see. */
static bool goes_in(const struct proxy_request *q, const char *name)
{
	if (named(hop, name) || named(q->fields->connection.p, name) || named("Host, Expect", name))
		return false;
	return q->target->form == PROXY_BY_NAME ||
	       !named("Cookie, Authorization, X-Forwarded-Prefix, X-Forwarded-Host", name);
}

static bool path_fine(const char *path)
{
	for (const unsigned char *p = (const unsigned char *)path; *p; p++)
		if (*p <= 0x20 || *p == 0x7f)
			return false;
	return path[0] == '/';
}

static void prefix_of(const struct proxy_target *t, char to[PREFIX_MAX])
{
	snprintf(to, PREFIX_MAX, "/v1/sessions/%s/ports/%u", t->session, t->port);
}

static void own_fields(const struct proxy_request *q, struct buf *to)
{
	char prefix[PREFIX_MAX];
	if (q->target->form == PROXY_BY_PATH) {
		prefix_of(q->target, prefix);
		buf_printf(to, "X-Forwarded-Prefix: %s\r\n", prefix);
		if (q->host && value_fine(q->host))
			buf_printf(to, "X-Forwarded-Host: %s\r\n", q->host);
	}
	if (q->chunked)
		buf_puts(to, "Transfer-Encoding: chunked\r\n");
	if (q->upgrade)
		buf_printf(to, "Connection: Upgrade\r\nUpgrade: %s\r\n", q->upgrade);
	else
		buf_puts(to, "Connection: close\r\n");
}

int proxy_request_head(const struct proxy_request *q, struct buf *to)
{
	size_t n = strlen(q->method);
	if (n == 0 || strspn(q->method, token) != n || strcmp(q->method, "CONNECT") == 0 ||
	        !path_fine(q->path) || (q->upgrade && q->upgrade[strspn(q->upgrade, token)]))
		return -EINVAL;
	buf_printf(to, "%s %s HTTP/1.1\r\n", q->method, q->path);
	if (q->target->form == PROXY_BY_NAME)
		buf_printf(to, "Host: %s\r\n", q->host);
	else
		buf_printf(to, "Host: localhost:%u\r\n", q->target->port);
	const struct buf *f = &q->fields->text;
	for (const char *p = f->p; p && p < f->p + f->len;) {
		const char *name = p, *value = name + strlen(name) + 1;
		p = value + strlen(value) + 1;
		if (goes_in(q, name))
			buf_printf(to, "%s: %s\r\n", name, value);
	}
	own_fields(q, to);
	buf_puts(to, "\r\n");
	return to->failed;
}

/* ---- out of the jail ---- */

static bool has_domain(const char *cookie)
{
	for (const char *p = strchr(cookie, ';'); p; p = strchr(p, ';')) {
		p += 1 + strspn(p + 1, " \t");
		if (strncasecmp(p, "domain", 6) == 0 && (p[6] == '=' || p[6] == ' '))
			return true;
	}
	return false;
}

/* What would act on more than the answer it comes with: on other names, other ports, on the origin
 * of the API. */
static bool comes_out(const struct proxy_target *t, const struct proxy_fields *f, const char *name,
        const char *value)
{
	if (named(hop, name) || named(f->connection.p, name) ||
	        named("Content-Length, Date, Alt-Svc, Clear-Site-Data, Strict-Transport-Security",
	                name))
		return false;
	if (strcasecmp(name, "Set-Cookie") == 0)
		return t->form == PROXY_BY_NAME && !has_domain(value);
	return t->form == PROXY_BY_NAME ||
	       !named("Service-Worker-Allowed, Refresh, Access-Control-Allow-Origin", name);
}

/* The part of a Location that is within the server, or NULL where it leads elsewhere. */
static const char *within(const struct proxy_target *t, const char *location)
{
	static const char *const hosts[] = {"localhost", "127.0.0.1", "[::1]"};
	char start[64];
	if (location[0] == '/' && location[1] != '/')
		return location;
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		int n = snprintf(start, sizeof(start), "http://%s:%u", hosts[i], t->port);
		if (strncasecmp(location, start, (size_t)n) == 0 &&
		        (location[n] == '/' || location[n] == '\0'))
			return location + n;
	}
	return NULL;
}

void proxy_answer_head(const struct proxy_target *t, const struct proxy_fields *fields,
        void (*each)(void *ctx, const char *name, const char *value), void *ctx)
{
	char prefix[PREFIX_MAX];
	const struct buf *f = &fields->text;
	prefix_of(t, prefix);
	for (const char *p = f->p; p && p < f->p + f->len;) {
		const char *name = p, *value = name + strlen(name) + 1;
		p = value + strlen(value) + 1;
		if (!comes_out(t, fields, name, value))
			continue;
		const char *path = t->form == PROXY_BY_PATH && strcasecmp(name, "Location") == 0
		                           ? within(t, value)
		                           : NULL;
		auto_free char *moved = path ? xasprintf("%s%s", prefix, path) : NULL;
		each(ctx, name, moved ? moved : value);
	}
	if (t->form == PROXY_BY_PATH) {
		/* Whoever shows it does so without scripts, forms or the origin it came from. */
		each(ctx, "Content-Security-Policy", "sandbox");
		each(ctx, "X-Content-Type-Options", "nosniff");
	}
}
