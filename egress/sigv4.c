#include "egress/sigv4.h"

#include "base/digest.h"
#include "base/mem.h"
#include "egress/sign.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
	CANONICAL_MAX = 64 << 10,
	SCOPE_MAX = 192,
	DAY = 8, /* characters of a stamp */
};

void sigv4_stamp(int64_t at_ms, char ret[SIGV4_STAMP])
{
	time_t s = (time_t)(at_ms / 1000);
	struct tm t;
	bool fine = gmtime_r(&s, &t) != NULL && strftime(ret, SIGV4_STAMP, "%Y%m%dT%H%M%SZ", &t);
	assert(fine); /* of years with four digits */
}

void sigv4_encode(struct buf *to, const char *p, size_t n, bool path)
{
	static const char hex[] = "0123456789ABCDEF";
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];
		bool plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
		             c == '-' || c == '.' || c == '_' || c == '~' || (path && c == '/');
		if (plain) {
			buf_putc(to, p[i]);
			continue;
		}
		buf_putc(to, '%');
		buf_putc(to, hex[c >> 4]);
		buf_putc(to, hex[c & 15]);
	}
}

static void sha256(const struct buf *b, char ret[SIGV4_DIGEST])
{
	struct digest *d = digest_new();
	digest_add(d, b->p ? b->p : "", b->len);
	digest_end(d, ret);
}

static void put_names(const struct sigv4_request *r, struct buf *to)
{
	for (size_t i = 0; i < r->nfields; i++)
		buf_printf(to, "%s%s", i ? ";" : "", r->fields[i].name);
}

static void put_canonical(const struct sigv4_request *r, struct buf *to)
{
	buf_printf(to, "%s\n%s\n%s\n", r->method, r->path, r->query);
	for (size_t i = 0; i < r->nfields; i++)
		buf_printf(to, "%s:%s\n", r->fields[i].name, r->fields[i].value);
	buf_putc(to, '\n');
	put_names(r, to);
	buf_printf(to, "\n%s", r->payload);
}

static void scope_of(const struct sigv4_keys *k, const char *stamp, char ret[SCOPE_MAX])
{
	(void)snprintf(ret, SCOPE_MAX, "%.*s/%s/s3/aws4_request", DAY, stamp, k->region);
}

/* The key of a day, a region and a service. */
static int derive(
        const struct sigv4_keys *k, const char *stamp, unsigned char ret[SIGN_MAC], struct err *e)
{
	const char *steps[] = {k->region, "s3", "aws4_request"};
	auto_buf struct buf first = BUF_INIT(CANONICAL_MAX);
	buf_puts(&first, "AWS4");
	buf_put(&first, k->secret, k->nsecret);
	int r = first.failed ? err_set(e, first.failed, "the secret key is too long")
	                     : sign_hmac(first.p, first.len, stamp, DAY, ret, e);
	if (first.p)
		explicit_bzero(first.p, first.len);
	for (size_t i = 0; i < ARRAY_LEN(steps) && r == 0; i++)
		r = sign_hmac((const char *)ret, SIGN_MAC, steps[i], strlen(steps[i]), ret, e);
	return r;
}

static int sign(const struct sigv4_keys *k, const struct sigv4_request *r, const char *stamp,
        char ret[SIGV4_DIGEST], struct err *e)
{
	unsigned char key[SIGN_MAC], mac[SIGN_MAC];
	char digest[SIGV4_DIGEST], scope[SCOPE_MAX];
	auto_buf struct buf canonical = BUF_INIT(CANONICAL_MAX), text = BUF_INIT(CANONICAL_MAX);
	put_canonical(r, &canonical);
	if (canonical.failed)
		return err_set(e, canonical.failed, "the request is too long to be signed");
	sha256(&canonical, digest);
	scope_of(k, stamp, scope);
	buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", stamp, scope, digest);
	int rc = derive(k, stamp, key, e);
	if (rc == 0)
		rc = sign_hmac((const char *)key, SIGN_MAC, text.p, text.len, mac, e);
	explicit_bzero(key, sizeof(key));
	for (size_t i = 0; i < SIGN_MAC && rc == 0; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", mac[i]);
	return rc;
}

int sigv4_authorize(
        const struct sigv4_keys *k, const struct sigv4_request *r, struct buf *to, struct err *e)
{
	char stamp[SIGV4_STAMP], scope[SCOPE_MAX], signature[SIGV4_DIGEST];
	sigv4_stamp(r->at_ms, stamp);
	int rc = sign(k, r, stamp, signature, e);
	if (rc < 0)
		return rc;
	scope_of(k, stamp, scope);
	buf_printf(to, "AWS4-HMAC-SHA256 Credential=%.*s/%s, SignedHeaders=", (int)k->naccess,
	        k->access, scope);
	put_names(r, to);
	buf_printf(to, ", Signature=%s", signature);
	return to->failed ? err_set(e, to->failed, "the signature does not fit") : 0;
}

int sigv4_link(const struct sigv4_keys *k, const char *host, const char *path, const char *token,
        int64_t at_ms, unsigned seconds, struct buf *to, struct err *e)
{
	char stamp[SIGV4_STAMP], scope[SCOPE_MAX], signature[SIGV4_DIGEST];
	const struct sigv4_field fields[] = {{"host", host}};
	auto_buf struct buf query = BUF_INIT(CANONICAL_MAX);
	sigv4_stamp(at_ms, stamp);
	scope_of(k, stamp, scope);
	/* Sorted, as they have to be. */
	buf_puts(&query, "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=");
	sigv4_encode(&query, k->access, k->naccess, false);
	sigv4_encode(&query, "/", 1, false);
	sigv4_encode(&query, scope, strlen(scope), false);
	buf_printf(&query, "&X-Amz-Date=%s&X-Amz-Expires=%u", stamp, seconds);
	if (token[0]) {
		buf_puts(&query, "&X-Amz-Security-Token=");
		sigv4_encode(&query, token, strlen(token), false);
	}
	buf_puts(&query, "&X-Amz-SignedHeaders=host");
	if (query.failed)
		return err_set(e, query.failed, "the link is too long to be signed");
	const struct sigv4_request r = {.method = "GET",
	        .path = path,
	        .query = query.p,
	        .fields = fields,
	        .nfields = ARRAY_LEN(fields),
	        .payload = "UNSIGNED-PAYLOAD",
	        .at_ms = at_ms};
	int rc = sign(k, &r, stamp, signature, e);
	if (rc < 0)
		return rc;
	buf_puts(to, query.p);
	buf_printf(to, "&X-Amz-Signature=%s", signature);
	return to->failed ? err_set(e, to->failed, "the link does not fit") : 0;
}
