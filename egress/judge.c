#include "egress/judge.h"

#include "egress/http_conn.h"
#include "egress/tls.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* As judge_refuse, where the policy could have said otherwise. */
static void refuse_unless(struct http_conn *c, int status, enum egress_remedy remedy,
        const char *fmt, ...) __attribute__((format(printf, 4, 5)));

struct report_of judge_asked(const struct http_conn *c, enum egress_remedy remedy)
{
	const struct exchange *x = &c->x;
	return (struct report_of){.host = x->name,
	        .port = c->place.port,
	        .protocol = EGRESS_PROTOCOL_HTTP,
	        .remedy = remedy,
	        .policy = &c->client.jail->names.book->policy,
	        .rule = x->rule,
	        .inject = x->injected ? x->name : NULL};
}

struct report_of judge_outside(const struct http_conn *c, enum egress_remedy remedy)
{
	struct report_of what = judge_asked(c, remedy);
	what.host = c->x.origin.host;
	what.port = c->x.origin.port;
	return what;
}

__attribute__((format(printf, 4, 0))) static void refuse_as(
        struct http_conn *c, int status, enum egress_remedy remedy, const char *fmt, va_list ap)
{
	char reason[128];
	vsnprintf(reason, sizeof(reason), fmt, ap);
	http_conn_refuse(c, status, judge_asked(c, remedy), reason);
}

void judge_refuse(struct http_conn *c, int status, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	refuse_as(c, status, EGRESS_REMEDY_NONE, fmt, ap);
	va_end(ap);
}

static void refuse_unless(
        struct http_conn *c, int status, enum egress_remedy remedy, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	refuse_as(c, status, remedy, fmt, ap);
	va_end(ap);
}

void judge_refuse_upstream(struct http_conn *c, int status, const struct err *e)
{
	char reason[128];
	bool inward = e->code == -EACCES && c->x.rule >= 0;
	snprintf(reason, sizeof(reason), "http: upstream %.110s", e->text);
	http_conn_refuse(c, status,
	        judge_outside(c, inward ? EGRESS_REMEDY_ADDRESSES : EGRESS_REMEDY_NONE), reason);
}

static bool may_ask(struct http_conn *c, const struct policy *p, struct request_range range,
        const struct http_head *h)
{
	if (requests_allow(p->requests + range.first, range.n, h->method.p, h->method.n,
	            h->target.p, h->target.n))
		return true;
	const char *query = memchr(h->target.p, '?', h->target.n);
	size_t path = query ? (size_t)(query - h->target.p) : h->target.n;
	refuse_unless(c, 403, EGRESS_REMEDY_REQUESTS,
	        "http: %.*s %.*s is not among the requests allowed for %.40s",
	        (int)(h->method.n < 10 ? h->method.n : 10), h->method.p,
	        (int)(path < 40 ? path : 40), h->target.p, c->x.name);
	return false;
}

/* Is its protocol the one that is spoken, its requests to be seen? */
static bool rule_fits(const struct http_conn *c, const struct policy_rule *r)
{
	return rule_shows_requests(r) && r->protocol == (c->tls ? RULE_TLS : RULE_HTTP);
}

static bool judge_rule(struct http_conn *c, const struct http_head *h, struct judge_grant *ret)
{
	const struct names *t = &c->client.jail->names;
	const struct policy *p = &t->book->policy;
	int i = names_rule(t, h->host.p, h->host.n, c->place.port);
	char reason[128];
	if (i < 0) {
		names_refusal(t, "http", c->x.name, reason, sizeof(reason));
		refuse_unless(c, 403, names_remedy(t), "%s", reason);
		return false;
	}
	c->x.rule = i;
	if (!rule_fits(c, &p->rules[i])) {
		refuse_unless(c, 403, c->tls ? EGRESS_REMEDY_NONE : EGRESS_REMEDY_PROTOCOL,
		        "http: %.60s:%u is allowed as %s%s", c->x.name, c->place.port,
		        rule_protocol_name(p->rules[i].protocol),
		        c->tls ? ", not terminated any more" : "");
		return false;
	}
	*ret = (struct judge_grant){.rule = &p->rules[i]};
	return may_ask(c, p, p->rules[i].requests, h);
}

bool judge_request(struct http_conn *c, const struct http_head *h, struct judge_grant *ret)
{
	struct names *t = &c->client.jail->names;
	char *host = c->x.name, reason[128];
	int len = (int)(h->host.n < POLICY_HOST_MAX ? h->host.n : POLICY_HOST_MAX - 1);
	snprintf(host, POLICY_HOST_MAX, "%.*s", len, h->host.p);
	bool known = names_rule(t, h->host.p, h->host.n, 0) >= 0 ||
	             names_injected(t, h->host.p, h->host.n);
	unsigned port = h->port != HTTP_NO_PORT ? (unsigned)h->port : c->tls ? 443 : 80;
	c->x.rule = -1; /* not that of the request before */
	c->x.injected = false;
	if (!known) {
		names_refusal(t, "http", host, reason, sizeof(reason));
		struct report_of what = judge_asked(c, names_remedy(t));
		what.port = port;
		http_conn_refuse(c, 403, what, reason);
	} else if (port != c->place.port) {
		judge_refuse(
		        c, 403, "http: Host names port %u, %u was dialled", port, c->place.port);
	} else if (c->tls && !http_is(h->host, tls_name(c->tls))) {
		judge_refuse(c, 403, "http: Host %.50s is not the server name %.50s", host,
		        tls_name(c->tls));
	} else if (!c->place.has_v4 || !names_belong(t, h->host.p, h->host.n, c->place.v4)) {
		judge_refuse(c, 403, "http: Host %.50s does not belong to the address %.40s", host,
		        c->address);
	} else if (h->upgrade) {
		judge_refuse(c, 403, "http: Upgrade is refused");
	} else {
		const struct policy_inject *in = names_injected(t, h->host.p, h->host.n);
		if (!in)
			return judge_rule(c, h, ret);
		*ret = (struct judge_grant){.inject = in};
		c->x.injected = true;
		return may_ask(c, &t->book->policy, in->requests, h);
	}
	return false;
}

bool judge_again(struct http_conn *c, struct judge_grant *ret)
{
	struct exchange *x = &c->x;
	const struct names *t = &c->client.jail->names;
	const struct policy *p = &t->book->policy;
	size_t n = strlen(x->name);
	struct request_range range;
	if (x->injected) {
		*ret = (struct judge_grant){.inject = names_injected(t, x->name, n)};
		if (!ret->inject)
			return false;
		range = ret->inject->requests;
	} else {
		x->rule = names_rule(t, x->name, n, c->place.port);
		if (x->rule < 0 || !rule_fits(c, &p->rules[x->rule]))
			return false;
		*ret = (struct judge_grant){.rule = &p->rules[x->rule]};
		range = ret->rule->requests;
	}
	return requests_allow(p->requests + range.first, range.n, x->method, strlen(x->method),
	        x->path, strlen(x->path));
}
