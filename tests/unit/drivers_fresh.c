/* Ids that are good for one question. */
#include "drivers/fresh.h"
#include "base/mem.h"
#include "tests/t.h"

int main(void)
{
	struct fresh f = {.slots = NULL};
	ok(fresh_take(&f, "1") && fresh_take(&f, "2") && fresh_take(&f, ""), "each id once");
	ok(!fresh_take(&f, "1") && !fresh_take(&f, "2") && !fresh_take(&f, ""), "and no more");
	int taken = 3, again = 0;
	for (int i = 10; i < FRESH_MAX + 1000; i++) {
		auto_free char *id = xasprintf("%d", i);
		taken += fresh_take(&f, id);
		again += fresh_take(&f, id);
	}
	ok(taken == FRESH_MAX, "so many in a run: %d", taken);
	ok(again == 0, "also while it grows");
	ok(!fresh_take(&f, "new"), "none is fresh beyond");
	fresh_done(&f);
	return done();
}
