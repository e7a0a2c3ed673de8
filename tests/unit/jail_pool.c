/* When the pool is refilled, and how long a block is kept. */
#include "jail/pool.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "tests/t.h"

#include <fcntl.h>
#include <sys/stat.h>

/* A directory stands in for a cgroup that cannot be removed. */
static void leftovers(void)
{
	static struct pool p;
	struct leases l;
	char dir[] = "/tmp/agentbox-test-XXXXXX";
	struct cgroup_tree tree = {.dirfd = -1};
	struct err e;
	must(mkdtemp(dir) != NULL, "a place");
	tree.dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_free char *file = xasprintf("%s/leases", dir);
	must(leases_open(&l, file, &e) == 0, "a lease table");
	pool_init(&p, &l, &tree);
	uint32_t a, b;
	must(lease_take(&l, &a, &e) == 0 && lease_take(&l, &b, &e) == 0, "two blocks");
	p.cgroups[lease_index(a)] = 1;
	p.cgroups[lease_index(b)] = 2;
	must(mkdirat(tree.dirfd, "jail-1", 0755) == 0, "the cgroup of the first stays");
	ok(pool_end_lease(&p, b, &e) == 0 && l.count == 1, "the other's block is free at once");
	ok(pool_end_lease(&p, a, &e) == -EBUSY && l.count == 1, "the first's is kept: %s", e.text);
	ok(pool_clear_leftovers(&p) > 0 && l.count == 1, "also at the next look");
	must(unlinkat(tree.dirfd, "jail-1", AT_REMOVEDIR) == 0, "the cgroup goes");
	p.look_ms = 0;
	ok(pool_clear_leftovers(&p) == -1 && l.count == 0, "then the block is free");
	pool_done(&p);
	leases_close(&l);
	fd_close(tree.dirfd);
	ok(unlink(file) == 0 && rmdir(dir) == 0, "cleaned up");
}

int main(void)
{
	leftovers();
	static struct policy_set set;
	static struct pool p;
	enum { DEPTH = 4 };
	pool_init(&p, NULL, NULL);
	ok(pool_refill_in(&p) == -1, "no policies: nothing to make");
	set.count = 2;
	set.config.pool = DEPTH;
	p.set = &set;
	p.taken_ms = clock_mono_ms() + 1000; /* far enough for the slowest machine */
	ok(pool_refill_in(&p) == -1, "no policy is wanted: nothing to make");
	p.wanted[0] = true;
	ok(pool_refill_in(&p) == 0, "an empty pool is filled at once");
	p.depth[0] = DEPTH / 2;
	ok(pool_refill_in(&p) == 0, "half a pool as well");
	p.depth[0] = DEPTH - 1;
	ok(pool_refill_in(&p) > 0, "one jail taken: its first moments are not disturbed");
	p.taken_ms = clock_mono_ms() - 1000;
	ok(pool_refill_in(&p) == 0, "later it is");
	p.depth[0] = DEPTH;
	ok(pool_refill_in(&p) == -1, "a full pool is left alone");
	p.taken_ms = clock_mono_ms() + 1000;
	p.wanted[1] = true;
	ok(pool_refill_in(&p) == 0, "a policy that is new does not wait for another's jail");
	set.config.pool = 0;
	p.depth[0] = 0;
	ok(pool_refill_in(&p) == -1, "pool: 0 makes nothing ahead");
	return done();
}
