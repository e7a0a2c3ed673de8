/*
 * pool.h - kits made ahead of time, and the leases that go with them.
 *
 * A policy is pooled from its first use on; `policy 0` and "default" from the
 * start.  A kit leaves the pool for good when a jail takes it.  Making one takes
 * about two milliseconds, so the pool is refilled one kit at a time when the loop
 * has nothing else to do; and, as long as enough are left, not at the moment
 * when the jail just made needs the processor (pool_refill_in).
 */
#ifndef JAIL_POOL_H
#define JAIL_POOL_H

#include "base/err.h"
#include "base/list.h"
#include "jail/cgroup.h"
#include "jail/kit.h"
#include "jail/lease.h"
#include "jail/policies.h"
#include "policy/policy.h"

#include <stdbool.h>

struct pool {
	struct leases *leases; /* borrowed, as the next two: for the life of the pool */
	const struct cgroup_tree *tree;
	const struct closer *closer; /* borrowed; NULL until set, as the next one */
	const char *authority;       /* kit_spec.authority */
	struct policies *policies;   /* until pool_reset, as the next one, which is in it */
	const struct policy_set *set;
	unsigned depth[LIMIT_POLICIES]; /* kits waiting, by policy */
	bool wanted[LIMIT_POLICIES];
	struct list kits;         /* of struct pooled */
	bool kept[ID_LEASES + 1]; /* blocks kept after their jail's end, by their index */
	unsigned nkept;
	int64_t look_ms;                 /* when to look at those again */
	uint64_t cgroups[ID_LEASES + 1]; /* by block: the serial in its cgroup's name */
	uint64_t serial;                 /* names cgroups */
	int64_t taken_ms;                /* the last pool_take */
};

void pool_init(struct pool *p, struct leases *leases, const struct cgroup_tree *tree);
void pool_done(struct pool *p);
void pool_empty(struct pool *p); /* frees what waits */
/* Frees what waits; from now on kits are made for these. */
void pool_reset(struct pool *p, struct policies *policies);

/* A kit for policy `i`, from the pool or made now.  *ret is owned; after kit_free the caller gives
 * its block back with pool_end_lease. */
MUST_USE int pool_take(struct pool *p, uint32_t i, struct kit **ret, struct err *e);
/* Where the cgroup could not be removed the block is kept; *e says so (it may be NULL). */
int pool_end_lease(struct pool *p, uint32_t base, struct err *e);
/* Tries again to remove what is left.  How many ms until the next try, -1: nothing is left. */
int64_t pool_clear_leftovers(struct pool *p);
/* How many ms the refill should wait: 0 where a pool is nearly empty or the last take was long ago,
 * -1 when there is nothing to make. */
int64_t pool_refill_in(const struct pool *p);
/* Makes one kit that is wanted.  1: there may be more to do, 0: full, -errno: that policy is left
 * alone until it is used again. */
MUST_USE int pool_refill(struct pool *p, struct err *e);

#endif
