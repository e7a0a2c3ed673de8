/*
 * names.h - what one jail may reach: the rules of its policy, and the synthetic
 * address that each name has inside the jail.
 *
 * Nothing here resolves anything: a query is answered from this table alone,
 * and a connection is judged against it again.  A name gets its address when it
 * is first asked for and keeps it as long as the jail lives, also when the
 * policy changes; the place is a hash of the name, so that it is the same one
 * after a restart of agentbox-egress.
 *
 *	198.18.0.1		the resolver
 *	198.18.0.2		proxy.agentbox
 *	198.18.1.0 + i		injected host i
 *	198.18.128.0 + slot	names of rules
 */
#ifndef EGRESS_NAMES_H
#define EGRESS_NAMES_H

#include "policy/advice.h"
#include "policy/policy.h"
#include "policy/outlets.h"

#include <stdint.h>

enum {
	/* Different names that one jail may ask for: a build touches some dozens; a tunnel that
	 * writes its data into names below an allowed suffix ends here. */
	NAMES_MAX = 1024,
	NAMES_SLOTS = 1 << 15, /* 198.18.128.0/17 */
};

/* The rules of a policy, shared by the jails that have it.  Counted. */
struct rulebook {
	unsigned refs;
	struct policy policy;
};
struct rulebook *rulebook_new(const struct policy *p);
struct rulebook *rulebook_ref(struct rulebook *b);
void rulebook_unref(struct rulebook *b); /* NULL is fine */

struct name {
	char *host; /* owned, lower case */
	uint32_t hash;
	uint16_t slot;
};

struct names {
	struct rulebook *book; /* owned reference; its policy says nothing when why_none is set */
	char why_none[64]; /* why nothing may be reached although the policy may say so; or "" */
	uint64_t seed;     /* of the jail */
	struct outlets outlets; /* likewise: of the policy, what it may reach */
	uint32_t n;
	struct name *list; /* owned, NAMES_MAX at most, in the order in which they were asked for */
};

enum name_kind { NAME_NONE, NAME_INJECT, NAME_RULE, NAME_PROXY };

struct name_ref {
	enum name_kind kind;
	const struct policy_inject *inject; /* INJECT */
	const char *host;                   /* all but NONE */
};

/* ---- life ---- */
void names_init(struct names *t, uint64_t jail, const struct outlets *reach); /* NULL: of all */
void names_done(struct names *t);
/* From now on: this policy, or nothing and why.  Takes a reference. */
void names_follow(struct names *t, struct rulebook *b, const char *why_none);

/* ---- asking; `host` in any case, without port and final dot ---- */

/* The address (host byte order), given out now if need be.  0, -ENOENT: no rule has it, -ENOSPC:
 * NAMES_MAX. */
MUST_USE int names_address(struct names *t, const char *host, size_t n, uint32_t *ret);
/* Who is at this address. */
struct name_ref names_at(const struct names *t, uint32_t ipv4);
/* A connection to `ipv4` says it wants `host`: is that its address?  Also where the address was
 * given out before a restart, which made the table forget it. */
bool names_belong(struct names *t, const char *host, size_t n, uint32_t ipv4);
/* The same where nothing is said: the raw rule whose name has its place there, or -1. */
int names_raw(struct names *t, uint32_t ipv4, unsigned port);
const struct policy_inject *names_injected(const struct names *t, const char *host, size_t n);
/* Index of the rule, or -1; port 0: any. */
int names_rule(const struct names *t, const char *host, size_t n, unsigned port);
/* The same for what was dialled as a number. */
int names_number(const struct names *t, const uint8_t mapped[16], unsigned port);

/* What of the policy would let through a name that no rule has. */
enum egress_remedy names_remedy(const struct names *t);
/* "dns: registry.example not in policy 'default'", or what stands in `why_none`. */
void names_refusal(
        const struct names *t, const char *layer, const char *host, char *to, size_t size);

#endif
