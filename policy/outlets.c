#include "policy/outlets.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static int fill(char *to, size_t size, size_t most, char *const *list, uint32_t *n,
        const char *what, struct err *e)
{
	for (*n = 0; list[*n]; (*n)++) {
		if (*n == most)
			return err_set(e, -E2BIG, "%s: more than %zu", what, most);
		if (!str_copy(to + *n * size, size, list[*n]))
			return err_set(e, -E2BIG, "%s: '%.60s' is too long", what, list[*n]);
	}
	return 0;
}

int outlets_make(char *const *hosts, char *const *secrets, struct outlets *ret, struct err *e)
{
	memset(ret, 0, sizeof(*ret));
	ret->flags = (hosts ? OUTLETS_ONLY_HOSTS : 0u) | (secrets ? OUTLETS_ONLY_SECRETS : 0u);
	int r = 0;
	if (hosts)
		r = fill(ret->hosts[0], sizeof(ret->hosts[0]), OUTLETS_HOSTS, hosts, &ret->nhosts,
		        "narrow.egress.only", e);
	if (r == 0 && secrets)
		r = fill(ret->secrets[0], sizeof(ret->secrets[0]), OUTLETS_SECRETS, secrets,
		        &ret->nsecrets, "secrets", e);
	return r;
}

static bool ends(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

bool outlets_ok(const struct outlets *r)
{
	bool ok = r->nhosts <= OUTLETS_HOSTS && r->nsecrets <= OUTLETS_SECRETS;
	for (uint32_t i = 0; ok && i < r->nhosts; i++)
		ok = ends(r->hosts[i], sizeof(r->hosts[i]));
	for (uint32_t i = 0; ok && i < r->nsecrets; i++)
		ok = ends(r->secrets[i], sizeof(r->secrets[i]));
	return ok;
}

bool outlets_host(const struct outlets *r, const char *host, size_t n)
{
	for (uint32_t i = 0; i < r->nhosts; i++)
		if (strlen(r->hosts[i]) == n && strncasecmp(r->hosts[i], host, n) == 0)
			return true;
	return !(r->flags & OUTLETS_ONLY_HOSTS);
}

static bool has_secret(const struct outlets *r, const char *secret)
{
	for (uint32_t i = 0; i < r->nsecrets; i++)
		if (strcmp(r->secrets[i], secret) == 0)
			return true;
	return !(r->flags & OUTLETS_ONLY_SECRETS);
}

const char *outlets_given(const struct outlets *r, const struct policy_given *g)
{
	return r->flags & OUTLETS_ONLY_SECRETS && has_secret(r, g->secret) ? g->variable : NULL;
}

bool outlets_inject(const struct outlets *r, const struct policy_inject *i)
{
	return outlets_host(r, i->host, strlen(i->host)) &&
	       (!i->secret[0] || has_secret(r, i->secret));
}

static bool lets_out(const struct policy *p, const char *host)
{
	for (uint32_t i = 0; i < p->ninject; i++)
		if (strcasecmp(p->inject[i].host, host) == 0)
			return true;
	return rules_for_name(p->rules, p->nrules, host, strlen(host), 0) >= 0;
}

static bool injects(const struct policy *p, const char *secret)
{
	for (uint32_t i = 0; i < p->ninject; i++)
		if (strcmp(p->inject[i].secret, secret) == 0)
			return true;
	return false;
}

int outlets_fits(const struct outlets *r, const struct policy *p, struct err *e)
{
	for (uint32_t i = 0; i < r->nhosts; i++)
		if (!lets_out(p, r->hosts[i]))
			return err_set(e, -EACCES,
			        "narrow.egress.only: the policy does not let out to '%.80s', and a "
			        "harness cannot widen it",
			        r->hosts[i]);
	for (uint32_t i = 0; i < r->nsecrets; i++)
		if (!injects(p, r->secrets[i]) && !policy_gives(p, r->secrets[i]))
			return err_set(e, -EACCES,
			        "secrets: the policy injects no '%.64s' (egress.inject of it says "
			        "which) and gives none to jails (its `secrets`)",
			        r->secrets[i]);
	return 0;
}
