#include "policy/otlp_yaml.h"
#include "base/mem.h"
#include "policy/allow_yaml.h"
#include "policy/webhooks_yaml.h"

#include <stdlib.h>
#include <string.h>

static int set_addresses(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct otlp *o = obj;
	return cidrs_set(k, n, o->to.cidrs, &o->to.ncidrs);
}

/* A part of one, in millionths: 0.25, 1. */
static int set_sample(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct otlp *o = obj;
	int r = keys_kind(k, n, YAML_SCALAR);
	if (r < 0)
		return r;
	const char *p = n->text;
	size_t whole = strspn(p, "0123456789");
	size_t digits = p[whole] == '.' ? strspn(p + whole + 1, "0123456789") : 0;
	bool number = whole > 0 && whole < 8 && digits < 8 &&
	              p[whole + (p[whole] == '.') + digits] == '\0';
	double part = number ? strtod(p, NULL) : -1;
	if (part < 0 || part > 1)
		return keys_error(
		        k, n->line, "'%s': '%.40s' is no part of one (0.25, 1)", n->key, n->text);
	o->sample = (uint32_t)(part * OTLP_WHOLE + 0.5);
	return 0;
}

static const struct key header_rows[] = {
        {.name = "value",
                .type = KEY_FIXED,
                .offset = offsetof(struct otlp_header, value),
                .size = POLICY_TEXT_MAX,
                .form = form_printable,
                .want = "printable characters",
                .doc = "What it has; with `secret` what stands in front of that (`Bearer `)."},
        {.name = "secret",
                .type = KEY_FIXED,
                .offset = offsetof(struct otlp_header, secret),
                .size = NAME_MAX_LEN,
                .form = form_variable,
                .want = "a name such as OTLP_KEY",
                .doc = "Name of the secret that it has."},
};
static const struct key_table header_keys = KEY_TABLE(header_rows);

static int set_headers(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct otlp *o = obj;
	int r = keys_kind(k, n, YAML_MAP);
	if (r == 0 && n->count > OTLP_HEADERS)
		r = keys_error(k, n->line, "'%s' has %zu entries, %d are possible", n->key,
		        n->count, OTLP_HEADERS);
	o->nheaders = 0;
	yaml_each (it, n) {
		if (r < 0)
			return r;
		struct otlp_header *h = &o->headers[o->nheaders];
		*h = (struct otlp_header){.name = ""};
		if (!form_header(it->key) || !str_copy(h->name, sizeof(h->name), it->key) ||
		        strcmp(h->name, "content-type") == 0)
			return keys_error(k, it->key_line,
			        "'%.60s' is no header that can be set (lower case)", it->key);
		r = keys_kind(k, it, YAML_MAP);
		if (r == 0 && it->count == 0)
			r = keys_error(
			        k, it->line, "header '%s': value or secret is expected", it->key);
		if (r == 0)
			r = keys_apply(k, &header_keys, it, h);
		o->nheaders++;
	}
	return r;
}

static int set_attributes(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct otlp *o = obj;
	static const struct key row = {.name = "value",
	        .type = KEY_FIXED,
	        .size = POLICY_TEXT_MAX,
	        .form = form_printable,
	        .want = "printable characters"};
	int r = keys_kind(k, n, YAML_MAP);
	if (r == 0 && n->count > OTLP_ATTRIBUTES)
		r = keys_error(k, n->line, "'%s' has %zu entries, %d are possible", n->key,
		        n->count, OTLP_ATTRIBUTES);
	o->nattributes = 0;
	yaml_each (it, n) {
		if (r < 0)
			return r;
		struct otlp_attribute *a = &o->attributes[o->nattributes];
		if (!form_reference(it->key) || !str_copy(a->key, sizeof(a->key), it->key))
			return keys_error(k, it->key_line,
			        "'%.60s' is not the name of an attribute", it->key);
		r = keys_set(k, &row, it, a->value);
		o->nattributes++;
	}
	return r;
}

static const struct key otlp_rows[] = {
        {.name = "url",
                .type = KEY_FIXED,
                .offset = offsetof(struct otlp, to.url),
                .size = POLICY_PATH_MAX,
                .required = true,
                .form = form_url,
                .want = "an http:// or https:// URL without user, query and final slash",
                .doc = "Where traces of runs are sent by OTLP over HTTP, as JSON; mostly ends in "
                       "/v1/traces.  Plain http only with `addresses`."},
        {.name = "headers",
                .type = KEY_OTHER,
                .set = set_headers,
                .sub = &header_keys,
                .want = "map of header to value or secret",
                .doc = "What goes with each request; at most 8."},
        {.name = "sample",
                .type = KEY_OTHER,
                .set = set_sample,
                .want = "part of one (0.25)",
                .dflt = "1",
                .doc = "Of how many runs there is a trace.  Where the client sent a `traceparent`, "
                       "that decides."},
        {.name = "service",
                .type = KEY_FIXED,
                .offset = offsetof(struct otlp, service),
                .size = NAME_MAX_LEN,
                .form = form_reference,
                .want = "a name",
                .dflt = "agentbox",
                .doc = "The resource's service.name."},
        {.name = "attributes",
                .type = KEY_OTHER,
                .set = set_attributes,
                .want = "map of name to text",
                .doc = "More attributes of the resource (deployment.environment.name: live); at "
                       "most 16."},
        {.name = "addresses",
                .type = KEY_OTHER,
                .set = set_addresses,
                .want = "list of addresses or networks",
                .dflt = "public ones alone",
                .doc = "Addresses that are not public (private, loopback) and that the receiver "
                       "may be at."},
        {.name = "delay",
                .type = KEY_TIME,
                .offset = offsetof(struct otlp, delay_ms),
                .max = WEBHOOK_TIMEOUT_MAX_MS,
                .dflt = "1s",
                .doc = "How long the spans of a run that has ended wait for those of others, to go "
                       "in one request."},
        {.name = "timeout",
                .type = KEY_TIME,
                .offset = offsetof(struct otlp, to.timeout_ms),
                .min = 100,
                .max = WEBHOOK_TIMEOUT_MAX_MS,
                .dflt = "10s",
                .doc = "How long one attempt may take."},
        {.name = "retry", .type = KEY_MAP, .sub = &webhook_retry_keys},
};
_Static_assert(offsetof(struct otlp, to) == 0, "retry fills a struct webhook");
const struct key_table otlp_keys = KEY_TABLE(otlp_rows);

void otlp_defaults(struct otlp *o)
{
	*o = (struct otlp){.to = {.timeout_ms = 10000,
	                           .first_ms = 1000,
	                           .most_ms = 300000,
	                           .keep_ms = 24ULL * 3600 * 1000},
	        .service = "agentbox",
	        .sample = OTLP_WHOLE,
	        .delay_ms = 1000};
}

int otlp_fits(const struct keys_ctx *k, const struct yaml_node *map, const struct otlp *o)
{
	const char *why = webhook_url_refusal(&o->to);
	if (why)
		return keys_error(k, yaml_get(map, "url")->line, "url %s %s", o->to.url, why);
	if (o->to.first_ms > o->to.most_ms)
		return keys_error(k, yaml_get(map, "retry")->line,
		        "'retry': `first` is longer than `most`, the longest pause");
	return 0;
}
