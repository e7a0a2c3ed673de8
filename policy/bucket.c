#include "policy/bucket.h"

#include "base/mem.h"
#include "policy/webhooks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { TIMES_MOST_MS = 3600 * 1000 };

const char *const bucket_sse_names[BUCKET_SSE_COUNT + 1] = {"none", "AES256", "aws:kms", NULL};

void bucket_defaults(struct bucket *b)
{
	*b = (struct bucket){.keep_local = 1,
	        .link_ms = 3600000,
	        .part_bytes = (uint64_t)16 << 20,
	        .timeout_ms = 60000,
	        .first_ms = 1000,
	        .most_ms = 300000,
	        .keep_ms = (uint64_t)24 * 3600 * 1000};
}

/* ---- forms ---- */

static bool lower(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool of(const char *text, const char *more, bool capitals)
{
	for (; *text; text++)
		if (!lower(*text) && !(capitals && *text >= 'A' && *text <= 'Z') &&
		        !strchr(more, *text))
			return false;
	return true;
}

bool form_bucket(const char *text)
{
	size_t n = strlen(text);
	return n >= 3 && n <= 63 && lower(text[0]) && lower(text[n - 1]) && of(text, "-.", false) &&
	       !strstr(text, "..");
}

bool form_region(const char *text)
{
	size_t n = strlen(text);
	return n >= 1 && n < NAME_MAX_LEN && of(text, "-", false);
}

bool form_bucket_prefix(const char *text)
{
	return strlen(text) < BUCKET_PREFIX_MAX && form_relative(text) && of(text, "-._/", true);
}

/* ---- whether it can be used ---- */

static const char *host_of(const char *url)
{
	return strstr(url, "://") + 3;
}

const char *bucket_refusal(const struct bucket *b)
{
	struct webhook at = {.ncidrs = b->ncidrs};
	memcpy(at.url, b->endpoint, sizeof(at.url));
	memcpy(at.cidrs, b->cidrs, sizeof(at.cidrs));
	const char *host = host_of(b->endpoint), *why = webhook_url_refusal(&at);
	if (why)
		return why;
	if (strchr(host, '/'))
		return "has a path, which is no part of what S3 signs; `prefix` is for that";
	if (!b->path_style && (*host == '[' || host[strspn(host, "0123456789.:")] == '\0'))
		return "is an address, in front of which no bucket can be named; say `path_style: "
		       "true`";
	return NULL;
}

static int bad(struct err *e, const char *why)
{
	return err_set(e, -EBADMSG, "artifacts.s3 %s", why);
}

static bool text_fine(const char *field, size_t size, form_fn *form)
{
	return memchr(field, '\0', size) != NULL && form(field);
}

static bool empty_or(const char *field, size_t size, form_fn *form)
{
	return field[0] == '\0' || text_fine(field, size, form);
}

int bucket_check(const struct bucket *b, struct err *e)
{
	if (!b->on)
		return 0;
	if (b->on > 1 || b->path_style > 1 || b->keep_local > 1 || b->sse >= BUCKET_SSE_COUNT)
		return bad(e, "has unknown flags");
	if (!text_fine(b->endpoint, sizeof(b->endpoint), form_url))
		return bad(e, "has no endpoint");
	if (!text_fine(b->region, sizeof(b->region), form_region) ||
	        !text_fine(b->name, sizeof(b->name), form_bucket) ||
	        !empty_or(b->prefix, sizeof(b->prefix), form_bucket_prefix))
		return bad(e, "names no bucket");
	if (!text_fine(b->access_key, sizeof(b->access_key), form_variable) ||
	        !text_fine(b->secret_key, sizeof(b->secret_key), form_variable) ||
	        !empty_or(b->session_token, sizeof(b->session_token), form_variable))
		return bad(e, "names no secrets");
	if (b->ncidrs > RULE_CIDRS)
		return bad(e, "has too many networks");
	for (uint32_t i = 0; i < b->ncidrs; i++)
		if (!cidr_fine(&b->cidrs[i]))
			return bad(e, "has a network with bits behind its prefix");
	if (b->part_bytes < BUCKET_PART_LEAST || b->part_bytes > BUCKET_PART_MOST ||
	        b->link_ms < 1000 || b->link_ms > BUCKET_LINK_MOST_MS || b->timeout_ms < 100 ||
	        b->timeout_ms > TIMES_MOST_MS || b->first_ms < 10 || b->most_ms < b->first_ms ||
	        b->most_ms > TIMES_MOST_MS || b->keep_ms < 100 || b->keep_ms > INT64_MAX / 2)
		return bad(e, "has sizes or times out of range");
	const char *why = bucket_refusal(b);
	return why ? err_set(e, -EBADMSG, "artifacts.s3.endpoint %s", why) : 0;
}

void bucket_place(const struct bucket *b, char ret[BUCKET_PLACE_MAX])
{
	(void)snprintf(ret, BUCKET_PLACE_MAX, "%s %s/%s", b->endpoint, b->name, b->prefix);
}
