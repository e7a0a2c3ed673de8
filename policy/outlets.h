/*
 * outlets.h - what a jail may reach of what its policy lets out: some hosts, some
 * secrets.  A narrowing and nothing else: whatever it says, the policy decides first.
 * Plain data, which goes from the harness to agentboxd and egress.  Pure.
 */
#ifndef POLICY_OUTLETS_H
#define POLICY_OUTLETS_H

#include "policy/policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OUTLETS_HOSTS = 24, OUTLETS_SECRETS = POLICY_INJECTS + POLICY_GIVEN };
enum outlets_flag {
	OUTLETS_ONLY_HOSTS = 1 << 0,   /* only these: names, and none of addresses */
	OUTLETS_ONLY_SECRETS = 1 << 1, /* no injected host that uses another one, and of those
	                                  that enter jails these */
};

struct outlets {
	uint32_t flags; /* 0: all that the policy lets out */
	uint32_t nhosts, nsecrets;
	uint32_t pad;
	char hosts[OUTLETS_HOSTS][POLICY_HOST_MAX]; /* exact names */
	char secrets[OUTLETS_SECRETS][NAME_MAX_LEN];
};

/* Lists end with NULL; one that is NULL narrows nothing.  -E2BIG. */
MUST_USE int outlets_make(
        char *const *hosts, char *const *secrets, struct outlets *ret, struct err *e);
/* Each that is named is the policy's: else -EACCES, with what there is. */
MUST_USE int outlets_fits(const struct outlets *r, const struct policy *p, struct err *e);
/* Counts and texts are in their bounds. */
bool outlets_ok(const struct outlets *r);

bool outlets_host(const struct outlets *r, const char *host, size_t n); /* in any case */
/* The variable that the jail gets this secret of the policy in: only who names it.  Or NULL. */
const char *outlets_given(const struct outlets *r, const struct policy_given *g);
bool outlets_inject(const struct outlets *r, const struct policy_inject *i);
static inline bool outlets_addresses(const struct outlets *r)
{
	return !(r->flags & OUTLETS_ONLY_HOSTS);
}

#endif
