/*
 * policies.h - root's policy files, compiled and taken into use.
 *
 * agentboxd does not parse: it opens root's files, refuses those that others
 * could have written, and lets agentbox-policyc turn them into one struct
 * policy_set.  What comes back is copied, checked and sealed here; the sealed
 * copy is what supervisor and egress get.  A set that cannot be loaded leaves
 * the old one in use.
 */
#ifndef JAIL_POLICIES_H
#define JAIL_POLICIES_H

#include "base/buf.h"
#include "base/err.h"
#include "jail/template.h"
#include "policy/policy.h"

#include <stdbool.h>

struct policies_source {
	const char *policyc;  /* program, absolute */
	const char *config;   /* agentboxd.yaml */
	bool config_required; /* it was named: missing is an error */
};

struct policies {
	struct policy_set *set; /* owned; checked, generation filled in */
	int memfd;              /* owned, sealed: the same bytes */
	struct template *roots; /* owned, set->count of them; made at first use */
};

/* Policy files are <directory of config>/policy/NAME.yaml, all root's; missing ones are fine.
 * What policyc said (notes, and every line of what it refused) is appended to `said`.
 * Blocks until policyc ends, at most POLICIES_COMPILE_MS.  Returns owned, or NULL with *e. */
struct policies *policies_load(
        const struct policies_source *s, uint64_t generation, struct buf *said, struct err *e);
/* The bytes of an earlier one (borrowed), for when the files do not hold. */
struct policies *policies_again(int memfd, uint64_t generation, struct err *e);
void policies_free(struct policies *p); /* NULL is fine */

/* The root of the jails of policy `i`, made where it is missing. */
MUST_USE int policies_root(
        struct policies *p, uint32_t i, const struct template **ret, struct err *e);

/* 30 ms is what the built-in set takes; a loaded machine may take a hundred times that. */
enum { POLICIES_COMPILE_MS = 10000 };

#endif
