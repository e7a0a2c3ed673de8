#include "supervisor/egress_totals.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

void egress_totals_done(struct egress_totals *t)
{
	for (size_t i = 0; i < t->nhosts; i++)
		free(t->hosts[i].host);
	free(t->hosts);
	memset(t, 0, sizeof(*t));
}

/* NULL: one host too many to be told apart. */
static struct egress_host *find(struct egress_totals *t, const char *host, unsigned port)
{
	for (size_t i = 0; i < t->nhosts; i++)
		if (t->hosts[i].port == port && strcmp(t->hosts[i].host, host) == 0)
			return &t->hosts[i];
	if (t->nhosts == EGRESS_HOSTS_KEPT)
		return NULL;
	if ((t->nhosts & (t->nhosts - 1)) == 0) /* at powers of two it is full */
		t->hosts = xrealloc(t->hosts, t->nhosts ? 2 * t->nhosts : 1, sizeof(*t->hosts));
	struct egress_host *h = &t->hosts[t->nhosts++];
	*h = (struct egress_host){.host = xstrdup(host), .port = port};
	return h;
}

static void add(struct egress_totals *t, bool denied, const char *host, unsigned port,
        const struct egress_host *more)
{
	struct egress_host *h = find(t, host, port);
	t->denied += denied ? more->requests : 0;
	t->allowed += denied ? 0 : more->requests;
	t->bytes_in += more->bytes_in;
	t->bytes_out += more->bytes_out;
	if (!h)
		return;
	h->denied += denied ? more->requests : 0;
	h->requests += denied ? 0 : more->requests;
	h->bytes_in += more->bytes_in;
	h->bytes_out += more->bytes_out;
}

void egress_totals_add(struct egress_totals *t, const struct jail_egress *x)
{
	const struct egress_host more = {
	        .requests = x->times, .bytes_in = x->bytes_in, .bytes_out = x->bytes_out};
	add(t, x->verdict == EGRESS_DENIED, x->host, x->port, &more);
}

void egress_totals_add_event(struct egress_totals *t, const struct json *event)
{
	const struct egress_host more = {
	        .requests = (uint64_t)json_int(event, "times", 1),
	        .bytes_in = (uint64_t)json_int(event, "bytesIn", 0),
	        .bytes_out = (uint64_t)json_int(event, "bytesOut", 0),
	};
	add(t, strcmp(json_str(event, "type", ""), "egress.denied") == 0,
	        json_str(event, "host", "?"), (unsigned)json_int(event, "port", 0), &more);
}

static int by_weight(const void *a, const void *b)
{
	const struct egress_host *x = a, *y = b;
	uint64_t bx = x->bytes_in + x->bytes_out, by = y->bytes_in + y->bytes_out;
	if (bx != by)
		return bx < by ? 1 : -1;
	if (x->requests + x->denied != y->requests + y->denied)
		return x->requests + x->denied < y->requests + y->denied ? 1 : -1;
	int r = strcmp(x->host, y->host);
	return r ? r : (int)x->port - (int)y->port;
}

void egress_totals_write(struct egress_totals *t, struct jw *w)
{
	if (t->nhosts)
		qsort(t->hosts, t->nhosts, sizeof(*t->hosts), by_weight);
	jw_open(w, "egress", '{');
	jw_int(w, "denied", (int64_t)t->denied);
	jw_int(w, "allowed", (int64_t)t->allowed);
	jw_int(w, "bytesIn", (int64_t)t->bytes_in);
	jw_int(w, "bytesOut", (int64_t)t->bytes_out);
	jw_open(w, "hosts", '[');
	for (size_t i = 0; i < t->nhosts && i < EGRESS_HOSTS_SHOWN; i++) {
		const struct egress_host *h = &t->hosts[i];
		jw_open(w, NULL, '{');
		jw_str(w, "host", h->host);
		jw_int(w, "port", h->port);
		jw_int(w, "requests", (int64_t)h->requests);
		jw_int(w, "denied", (int64_t)h->denied);
		jw_int(w, "bytesIn", (int64_t)h->bytes_in);
		jw_int(w, "bytesOut", (int64_t)h->bytes_out);
		jw_close(w, '}');
	}
	jw_close(w, ']');
	jw_close(w, '}');
}
