/*
 * t.h - the unit test framework: TAP on stdout, one process a file.
 *
 *	int main(void)
 *	{
 *		ok(1 + 1 == 2, "sum of %d and %d", 1, 1);
 *		return done();
 *	}
 *
 * must(): like ok, and ends the test when it fails (what follows needs it).
 */
#ifndef TESTS_T_H
#define TESTS_T_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What AddressSanitizer keeps of memory that was freed: its quarantine, in MiB. */
#ifdef SANITIZED
enum { T_KEPT_MIB = 256 };
#else
enum { T_KEPT_MIB = 0 };
#endif

static int t_count, t_failed;

#define ok(cond, ...)                                                                              \
	({                                                                                         \
		int t_ok_ = !!(cond);                                                              \
		printf("%sok %d - ", t_ok_ ? "" : "not ", ++t_count);                              \
		printf(__VA_ARGS__);                                                               \
		printf("\n");                                                                      \
		if (!t_ok_) {                                                                      \
			t_failed++;                                                                \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond);                        \
		}                                                                                  \
		fflush(stdout);                                                                    \
		t_ok_;                                                                             \
	})

#define must(cond, ...)                                                                            \
	do {                                                                                       \
		if (!ok(cond, __VA_ARGS__)) {                                                      \
			printf("1..%d\n", t_count);                                                \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define is_str(got, want, ...)                                                                     \
	do {                                                                                       \
		const char *t_g_ = (got), *t_w_ = (want);                                          \
		if (!ok(t_g_ && strcmp(t_g_, t_w_) == 0, __VA_ARGS__))                             \
			printf("# got:  %s\n# want: %s\n", t_g_ ? t_g_ : "(null)", t_w_);          \
	} while (0)

static inline int must_work(void)
{
	const char *value = getenv("AGENTBOX_MUST_WORK");
	return value && strcmp(value, "1") == 0;
}

/* Skips the rest of the file; with AGENTBOX_MUST_WORK=1 that is a failure. */
static inline void skip_all(const char *why)
{
	if (must_work()) {
		printf("not ok %d - must work here: %s\n1..%d\n", t_count + 1, why, t_count + 1);
		exit(1);
	}
	printf("1..0 # SKIP %s\n", why);
	exit(0);
}

/* One check that cannot be made here; with AGENTBOX_MUST_WORK=1 that is a failure. */
#define skip_one(what, why) ok(!must_work(), "%s # SKIP %s", what, why)

static inline int done(void)
{
	printf("1..%d\n", t_count);
	return t_failed ? 1 : 0;
}

#endif
