/*
 * escape.h - attempts that must fail, one line each.
 *
 * Run inside a jail of policy `default`, as the agent and as inner root; TAP on
 * stdout.  Outside a jail some go through, so every attempt is harmless there: it
 * names itself, passes nonsense where the permission check comes first, or opens
 * without writing.
 */
#ifndef TESTS_ESCAPE_ESCAPE_H
#define TESTS_ESCAPE_ESCAPE_H

#include "tests/t.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* `call` must fail with `want` (or `other`, where two answers are both right). */
#define FAILS2(call, want, other, ...)                                                             \
	do {                                                                                       \
		errno = 0;                                                                         \
		long t_r_ = (long)(call);                                                          \
		int t_e_ = errno;                                                                  \
		ok(t_r_ < 0 && (t_e_ == (want) || t_e_ == (other)), __VA_ARGS__);                  \
		if (t_r_ >= 0)                                                                     \
			printf("# went through: %ld\n", t_r_);                                     \
		else if (t_e_ != (want) && t_e_ != (other))                                        \
			printf("# %s instead of %s\n", strerror(t_e_), strerror(want));            \
	} while (0)
#define FAILS(call, want, ...) FAILS2(call, want, want, __VA_ARGS__)

#endif
