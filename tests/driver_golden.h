/*
 * driver_golden.h - what a driver made of a recorded run against the file of what
 * it must make of it; GOLDEN_WRITE=1 writes that file instead.
 */
#ifndef TESTS_DRIVER_GOLDEN_H
#define TESTS_DRIVER_GOLDEN_H

#include "tests/driver_record.h"
#include "tests/t.h"

/* The first line that differs, for a person. */
static inline void show_difference(const char *got, const char *want)
{
	while (*got && *want) {
		size_t g = strcspn(got, "\n"), w = strcspn(want, "\n");
		if (g != w || memcmp(got, want, g) != 0)
			break;
		got += g + (got[g] != '\0');
		want += w + (want[w] != '\0');
	}
	printf("# got:  %.*s\n# want: %.*s\n", (int)strcspn(got, "\n"), got,
	        (int)strcspn(want, "\n"), want);
}

static inline void golden_compare(const struct record *r, const char *golden, const char *name)
{
	size_t n = 0;
	if (getenv("GOLDEN_WRITE")) {
		FILE *f = fopen(golden, "we");
		must(f && fwrite(r->out.p, 1, r->out.len, f) == r->out.len, "%s written", golden);
		fclose(f);
	}
	auto_free char *want = read_file(golden, &n);
	if (!ok(want && n == r->out.len && memcmp(want, r->out.p, n) == 0,
	            "%s: the events it must yield", name) &&
	        want)
		show_difference(r->out.p, want);
}

#endif
