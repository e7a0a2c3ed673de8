/*
 * names.h - what one jail may reach: the names of its policy and the synthetic
 * address each of them has inside the jail.
 *
 * A copy of the few fields of struct policy that egress needs, so that a jail
 * does not pin a whole policy set.  Nothing here resolves anything: a name is
 * answered from this table alone, and a connection is judged against it again.
 */
#ifndef EGRESS_NAMES_H
#define EGRESS_NAMES_H

#include "policy/policy.h"

#include <netinet/in.h>
#include <stdint.h>

struct names {
	char policy[NAME_MAX_LEN];
	char why_none[64]; /* why the table is empty although the policy may not be; "" else */
	uint32_t n;
	struct policy_inject inject[POLICY_INJECTS]; /* name i is at EGRESS_SYNTHETIC + i */
};

/* From a checked policy. */
void names_of(const struct policy *p, struct names *ret);
/* An empty table that says why. */
void names_none(const char *policy, const char *why, struct names *ret);

/* Index of the name (case is ignored), or -1.  `host` has no port and no final dot. */
int names_find(const struct names *t, const char *host, size_t n);
/* Index of the name at this address (host byte order), or -1. */
int names_at(const struct names *t, uint32_t ipv4);
uint32_t names_address(int index); /* host byte order */

/* "registry.example not in policy 'default'" with what stands in `why_none`, when it does. */
void names_refusal(
        const struct names *t, const char *layer, const char *host, char *to, size_t size);

#endif
