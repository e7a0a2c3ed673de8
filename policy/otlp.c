#include "policy/otlp.h"

#include <errno.h>
#include <string.h>

static int bad(struct err *e, const char *why)
{
	return err_set(e, -EBADMSG, "otlp %s", why);
}

static bool fine(const char *field, size_t size, form_fn *form)
{
	return memchr(field, '\0', size) != NULL && form(field);
}

static bool none(const char *field, size_t size)
{
	(void)size;
	return field[0] == '\0';
}

static bool header_fine(const struct otlp_header *h)
{
	bool secret = none(h->secret, sizeof(h->secret)) ||
	              fine(h->secret, sizeof(h->secret), form_variable);
	bool value = none(h->value, sizeof(h->value)) ||
	             fine(h->value, sizeof(h->value), form_printable);
	return fine(h->name, sizeof(h->name), form_header) && secret && value;
}

int otlp_check(const struct otlp *o, struct err *e)
{
	const struct webhook *w = &o->to;
	if (w->url[0] == '\0')
		return 0;
	if (!fine(w->url, sizeof(w->url), form_url))
		return bad(e, "has no URL");
	if (w->ncidrs > RULE_CIDRS || o->nheaders > OTLP_HEADERS ||
	        o->nattributes > OTLP_ATTRIBUTES || o->sample > OTLP_WHOLE)
		return bad(e, "has counts out of range");
	for (uint32_t i = 0; i < w->ncidrs; i++)
		if (!cidr_fine(&w->cidrs[i]))
			return bad(e, "has a network with bits behind its prefix");
	for (uint32_t i = 0; i < o->nheaders; i++)
		if (!header_fine(&o->headers[i]))
			return bad(e, "has a header that is none");
	for (uint32_t i = 0; i < o->nattributes; i++)
		if (!fine(o->attributes[i].key, sizeof(o->attributes[i].key), form_reference) ||
		        !fine(o->attributes[i].value, sizeof(o->attributes[i].value),
		                form_printable))
			return bad(e, "has an attribute that is none");
	if (!fine(o->service, sizeof(o->service), form_reference))
		return bad(e, "has no name of the service");
	if (!webhook_times_fine(w) || o->delay_ms > WEBHOOK_TIMEOUT_MAX_MS)
		return bad(e, "has times out of range");
	const char *why = webhook_url_refusal(w);
	return why ? bad(e, why) : 0;
}
