/* When the pool is refilled. */
#include "jail/pool.h"
#include "base/clock.h"
#include "tests/t.h"

int main(void)
{
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
