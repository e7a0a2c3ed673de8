#include "egress/names.h"

#include "base/mem.h"
#include "proto/egress.h"

#include <stdio.h>
#include <string.h>

void names_of(const struct policy *p, struct names *ret)
{
	memset(ret, 0, sizeof(*ret));
	(void)str_copy(ret->policy, sizeof(ret->policy), p->name);
	ret->n = p->ninject < POLICY_INJECTS ? p->ninject : POLICY_INJECTS;
	memcpy(ret->inject, p->inject, ret->n * sizeof(ret->inject[0]));
}

void names_none(const char *policy, const char *why, struct names *ret)
{
	memset(ret, 0, sizeof(*ret));
	(void)str_copy(ret->policy, sizeof(ret->policy), policy);
	(void)str_copy(ret->why_none, sizeof(ret->why_none), why);
}

int names_find(const struct names *t, const char *host, size_t n)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (strlen(t->inject[i].host) == n && strncasecmp(t->inject[i].host, host, n) == 0)
			return (int)i;
	return -1;
}

int names_at(const struct names *t, uint32_t ipv4)
{
	return ipv4 >= EGRESS_SYNTHETIC && ipv4 - EGRESS_SYNTHETIC < t->n
	               ? (int)(ipv4 - EGRESS_SYNTHETIC)
	               : -1;
}

uint32_t names_address(int index)
{
	return EGRESS_SYNTHETIC + (uint32_t)index;
}

void names_refusal(
        const struct names *t, const char *layer, const char *host, char *to, size_t size)
{
	if (t->why_none[0])
		snprintf(to, size, "%s: %.60s refused: %s", layer, host, t->why_none);
	else
		snprintf(to, size, "%s: %.60s not in policy '%.40s'", layer, host, t->policy);
}
