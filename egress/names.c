#include "egress/names.h"

#include "base/mem.h"
#include "proto/egress.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct rulebook *rulebook_new(const struct policy *p)
{
	struct rulebook *b = xnew(struct rulebook);
	b->refs = 1;
	b->policy = *p;
	return b;
}

struct rulebook *rulebook_ref(struct rulebook *b)
{
	b->refs++;
	return b;
}

void rulebook_unref(struct rulebook *b)
{
	if (b && --b->refs == 0)
		free(b);
}

void names_init(struct names *t, uint64_t jail, const struct outlets *reach)
{
	memset(t, 0, sizeof(*t));
	t->seed = jail;
	if (reach)
		t->outlets = *reach;
}

void names_done(struct names *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		free(t->list[i].host);
	free(t->list);
	rulebook_unref(t->book);
	memset(t, 0, sizeof(*t));
}

void names_follow(struct names *t, struct rulebook *b, const char *why_none)
{
	struct rulebook *old = t->book;
	t->book = rulebook_ref(b);
	(void)str_copy(t->why_none, sizeof(t->why_none), why_none);
	rulebook_unref(old);
}

/* ---- addresses ---- */

/* FNV-1a, and a last mix since only its low bits are used. */
static uint32_t hash_of(const struct names *t, const char *host, size_t n)
{
	uint64_t h = 14695981039346656037u ^ (t->seed * 1099511628211u);
	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)tolower((unsigned char)host[i])) * 1099511628211u;
	return (uint32_t)(h >> 32 ^ h);
}

static const struct name *known(const struct names *t, const char *host, size_t n, uint32_t hash)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (t->list[i].hash == hash && strlen(t->list[i].host) == n &&
		        strncasecmp(t->list[i].host, host, n) == 0)
			return &t->list[i];
	return NULL;
}

static const struct name *in_slot(const struct names *t, uint16_t slot)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (t->list[i].slot == slot)
			return &t->list[i];
	return NULL;
}

static const struct name *add(
        struct names *t, const char *host, size_t n, uint32_t hash, uint16_t slot)
{
	if ((t->n & (t->n - 1)) == 0) /* at powers of two it is full */
		t->list = xrealloc(t->list, t->n ? 2 * t->n : 1, sizeof(*t->list));
	struct name *it = &t->list[t->n++];
	it->host = xstrndup(host, n);
	for (char *p = it->host; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	it->hash = hash;
	it->slot = slot;
	return it;
}

const struct policy_inject *names_injected(const struct names *t, const char *host, size_t n)
{
	const struct policy *p = &t->book->policy;
	if (t->why_none[0])
		return NULL;
	for (uint32_t i = 0; i < p->ninject; i++)
		if (strlen(p->inject[i].host) == n && strncasecmp(p->inject[i].host, host, n) == 0)
			return outlets_inject(&t->outlets, &p->inject[i]) ? &p->inject[i] : NULL;
	return NULL;
}

static bool is_proxy(const struct names *t, const char *host, size_t n)
{
	return (t->book->policy.flags & POLICY_PROXY) && n == strlen(POLICY_PROXY_NAME) &&
	       strncasecmp(host, POLICY_PROXY_NAME, n) == 0;
}

int names_rule(const struct names *t, const char *host, size_t n, unsigned port)
{
	if (t->why_none[0] || !outlets_host(&t->outlets, host, n))
		return -1;
	return rules_for_name(t->book->policy.rules, t->book->policy.nrules, host, n, port);
}

int names_number(const struct names *t, const uint8_t mapped[16], unsigned port)
{
	if (t->why_none[0] || !outlets_addresses(&t->outlets))
		return -1;
	return rules_for_address(t->book->policy.rules, t->book->policy.nrules, mapped, port);
}

int names_address(struct names *t, const char *host, size_t n, uint32_t *ret)
{
	if (t->why_none[0])
		return -ENOENT;
	const struct policy_inject *inject = names_injected(t, host, n);
	if (inject) {
		*ret = EGRESS_SYNTHETIC + (uint32_t)(inject - t->book->policy.inject);
		return 0;
	}
	if (is_proxy(t, host, n)) {
		*ret = EGRESS_PROXY;
		return 0;
	}
	if (names_rule(t, host, n, 0) < 0)
		return -ENOENT;
	uint32_t hash = hash_of(t, host, n);
	const struct name *it = known(t, host, n, hash);
	if (!it && t->n == NAMES_MAX)
		return -ENOSPC;
	uint16_t slot = hash % NAMES_SLOTS;
	while (!it && in_slot(t, slot))
		slot = (uint16_t)((slot + 1) % NAMES_SLOTS);
	if (!it)
		it = add(t, host, n, hash, slot);
	*ret = EGRESS_NAMES + it->slot;
	return 0;
}

struct name_ref names_at(const struct names *t, uint32_t ipv4)
{
	const struct policy *p = &t->book->policy;
	if (t->why_none[0])
		return (struct name_ref){.kind = NAME_NONE};
	if (ipv4 >= EGRESS_SYNTHETIC && ipv4 - EGRESS_SYNTHETIC < p->ninject) {
		const struct policy_inject *i = &p->inject[ipv4 - EGRESS_SYNTHETIC];
		if (!outlets_inject(&t->outlets, i))
			return (struct name_ref){.kind = NAME_NONE};
		return (struct name_ref){NAME_INJECT, i, i->host};
	}
	if (ipv4 == EGRESS_PROXY && (p->flags & POLICY_PROXY))
		return (struct name_ref){NAME_PROXY, NULL, POLICY_PROXY_NAME};
	const struct name *it = ipv4 >= EGRESS_NAMES && ipv4 - EGRESS_NAMES < NAMES_SLOTS
	                                ? in_slot(t, (uint16_t)(ipv4 - EGRESS_NAMES))
	                                : NULL;
	return it ? (struct name_ref){NAME_RULE, NULL, it->host}
	          : (struct name_ref){.kind = NAME_NONE};
}

bool names_belong(struct names *t, const char *host, size_t n, uint32_t ipv4)
{
	struct name_ref at = names_at(t, ipv4);
	uint32_t address;
	if (at.kind != NAME_NONE)
		return strlen(at.host) == n && strncasecmp(at.host, host, n) == 0;
	/* Nobody there: the name takes the place if it would have been given it. */
	return names_address(t, host, n, &address) == 0 && address == ipv4;
}

int names_raw(struct names *t, uint32_t ipv4, unsigned port)
{
	const struct policy *p = &t->book->policy;
	for (uint32_t i = 0; i < p->nrules && ipv4 >= EGRESS_NAMES; i++) {
		const struct policy_rule *r = &p->rules[i];
		size_t n = strlen(r->host);
		if (r->protocol == RULE_RAW && n && rule_has_port(r, port) &&
		        names_belong(t, r->host, n, ipv4))
			return names_rule(t, r->host, n, port);
	}
	return -1;
}

enum egress_remedy names_remedy(const struct names *t)
{
	return t->why_none[0] || t->outlets.flags ? EGRESS_REMEDY_NONE : EGRESS_REMEDY_ALLOW;
}

void names_refusal(
        const struct names *t, const char *layer, const char *host, char *to, size_t size)
{
	if (t->why_none[0])
		snprintf(to, size, "%s: %.60s refused: %s", layer, host, t->why_none);
	else
		snprintf(to, size, "%s: %.60s not in policy '%.40s'%s", layer, host,
		        t->book->policy.name,
		        t->outlets.flags ? ", or left out by the harness" : "");
}
