/* What a Range header asks for, and what of it there is. */
#include "supervisor/range.h"

#include "tests/t.h"

static void is_part(const char *header, uint64_t size, uint64_t at, uint64_t n)
{
	struct range r;
	uint64_t got_at, got_n;
	range_read(header, &r);
	bool some = range_of(&r, size, &got_at, &got_n);
	ok(some && got_at == at && got_n == n, "%s of %llu", header ? header : "nothing",
	        (unsigned long long)size);
}

static void is_nothing(const char *header, uint64_t size)
{
	struct range r;
	uint64_t at, n;
	range_read(header, &r);
	ok(!range_of(&r, size, &at, &n), "%s of %llu is nothing", header, (unsigned long long)size);
}

int main(void)
{
	is_part(NULL, 0, 0, 0);
	is_part(NULL, 10, 0, 10);
	is_part("bytes=0-0", 10, 0, 1);
	is_part("bytes=2-5", 10, 2, 4);
	is_part("BYTES=2-5", 10, 2, 4);
	is_part("bytes=2-", 10, 2, 8);
	is_part("bytes=2-999999999999999999", 10, 2, 8);
	is_part("bytes=-3", 10, 7, 3);
	is_part("bytes=-30", 10, 0, 10);
	is_nothing("bytes=10-", 10);
	is_nothing("bytes=0-", 0);
	is_nothing("bytes=-0", 10);
	static const char *const all[] = {"bytes=5-2", "bytes=a-", "bytes=", "bytes=-", "lines=0-1",
	        "bytes=0-1,4-5", "bytes=0-1 ", "bytes= 0-1", "bytes=+1-2",
	        "bytes=99999999999999999999-"};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		is_part(all[i], 10, 0, 10);
	return done();
}
