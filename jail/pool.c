#include "jail/pool.h"
#include "base/clock.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Whatever the configuration says: a kit holds a uid block, a dozen descriptors and a network
 * namespace (about 200 KiB of kernel memory). */
enum { POOL_DEPTH_MAX = 32 };
/* A jail's first byte comes within a millisecond of its making where the processors are free for
 * it; a refill at that moment would take one of them for longer than that. */
enum { POOL_QUIET_MS = 4 };

enum { LOOK_MS = 100 }; /* between two looks at what could not be removed */

struct pooled {
	struct list link; /* in pool.kits */
	uint32_t policy;
	struct kit *kit; /* owned */
};

void pool_init(struct pool *p, struct leases *leases, const struct cgroup_tree *tree)
{
	memset(p, 0, sizeof(*p));
	p->leases = leases;
	p->tree = tree;
	list_init(&p->kits);
}

/* ---- leases, and what keeps them ---- */

static void name_cgroup(uint64_t serial, char out[CGROUP_NAME_MAX])
{
	snprintf(out, CGROUP_NAME_MAX, "jail-%llu", (unsigned long long)serial);
}

static bool is_there(const struct pool *p, const char *name)
{
	return faccessat(p->tree->dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

int pool_end_lease(struct pool *p, uint32_t base, struct err *e)
{
	char name[CGROUP_NAME_MAX];
	name_cgroup(p->cgroups[lease_index(base)], name);
	bool cgroup = is_there(p, name);
	int r = cgroup ? -EBUSY : lease_drop(p->leases, base);
	if (r == 0)
		return 0;
	p->nkept += !p->kept[lease_index(base)];
	p->kept[lease_index(base)] = true;
	return cgroup ? err_set(e, r,
	                        "cgroup %s is still there: its block of user ids is kept "
	                        "until it is gone",
	                        name)
	              : err_set(e, r, "a block of user ids cannot be given back yet: %s",
	                        strerror(-r));
}

int64_t pool_clear_leftovers(struct pool *p)
{
	int64_t now = clock_mono_ms();
	if (!p->nkept)
		return -1;
	if (now < p->look_ms)
		return p->look_ms - now;
	for (uint32_t i = 1; i <= ID_LEASES; i++) {
		char name[CGROUP_NAME_MAX];
		name_cgroup(p->cgroups[i], name);
		if (!p->kept[i] || cgroup_sweep(p->tree, name, 0, NULL) < 0 ||
		        lease_drop(p->leases, lease_base(i)) < 0)
			continue;
		p->kept[i] = false;
		p->nkept--;
	}
	p->look_ms = now + LOOK_MS;
	return p->nkept ? LOOK_MS : -1;
}

/* ---- kits ---- */

static struct kit *unwrap(struct pool *p, struct pooled *at)
{
	struct kit *k = at->kit;
	list_remove(&at->link);
	p->depth[at->policy]--;
	free(at);
	return k;
}

static void drop_kit(struct pool *p, struct kit *k)
{
	uint32_t base = k->base;
	kit_free(k);
	(void)pool_end_lease(p, base, NULL); /* kept where it has to be */
}

void pool_empty(struct pool *p)
{
	list_for_each (at, &p->kits, struct pooled, link)
		drop_kit(p, unwrap(p, at));
}

void pool_done(struct pool *p)
{
	if (!p->kits.next)
		return;
	pool_empty(p);
	(void)pool_clear_leftovers(p); /* the rest is the next start's */
}

void pool_reset(struct pool *p, struct policies *policies)
{
	pool_empty(p);
	p->policies = policies;
	p->set = policies->set;
	memset(p->wanted, 0, sizeof(p->wanted));
	int dflt = policy_find(p->set, "default");
	if (dflt >= 0)
		p->wanted[dflt] = true;
}

static int make(struct pool *p, uint32_t i, struct kit **ret, struct err *e)
{
	uint32_t base;
	const struct template *root;
	int r = policies_root(p->policies, i, &root, e);
	if (r < 0)
		return err_not_theirs(e, r);
	r = lease_take(p->leases, &base, e);
	if (r < 0)
		return r;
	char name[CGROUP_NAME_MAX];
	name_cgroup(++p->serial, name);
	const struct kit_spec spec = {.policy = &p->set->policies[i],
	        .root = root,
	        .limits = &p->set->policies[i].limits,
	        .ports = p->set->policies[i].ports,
	        .nports = p->set->policies[i].nports,
	        .base = base,
	        .name = name,
	        .tree = p->tree,
	        .authority = p->authority,
	        .closer = p->closer};
	p->cgroups[lease_index(base)] = p->serial;
	struct err why = {0};
	*ret = kit_make(&spec, &why);
	if (*ret)
		return 0;
	(void)pool_end_lease(p, base, NULL);
	err_not_theirs(&why, why.code);
	return err_set(e, why.code, "%s", why.text);
}

int pool_take(struct pool *p, uint32_t i, struct kit **ret, struct err *e)
{
	p->wanted[i] = true;
	p->taken_ms = clock_mono_ms();
	list_for_each (at, &p->kits, struct pooled, link) {
		if (at->policy != i)
			continue;
		*ret = unwrap(p, at);
		return 0;
	}
	return make(p, i, ret, e);
}

static unsigned full_depth(const struct pool *p)
{
	unsigned want = p->set ? p->set->config.pool : 0;
	return want < POOL_DEPTH_MAX ? want : POOL_DEPTH_MAX;
}

int64_t pool_refill_in(const struct pool *p)
{
	/* A burst empties the pool faster than that: then a kit is better late than never. */
	unsigned want = full_depth(p);
	bool full = true;
	for (uint32_t i = 0; p->set && i < p->set->count; i++) {
		if (!p->wanted[i] || p->depth[i] >= want)
			continue;
		if (p->depth[i] <= want / 2)
			return 0;
		full = false;
	}
	int64_t left = p->taken_ms + POOL_QUIET_MS - clock_mono_ms();
	return full ? -1 : left > 0 ? left : 0;
}

int pool_refill(struct pool *p, struct err *e)
{
	unsigned want = full_depth(p);
	for (uint32_t i = 0; p->set && i < p->set->count; i++) {
		if (!p->wanted[i] || p->depth[i] >= want)
			continue;
		struct kit *k = NULL;
		int r = make(p, i, &k, e);
		if (r < 0) {
			p->wanted[i] = false;
			return r;
		}
		struct pooled *at = xnew(struct pooled);
		at->policy = i;
		at->kit = k;
		list_append(&p->kits, &at->link);
		p->depth[i]++;
		return 1;
	}
	return 0;
}
