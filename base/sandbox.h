/*
 * sandbox.h - a small allow-list system call filter for our own unprivileged
 * processes (the jails' filter is policy/bpf.h).
 *
 * A program lists what it calls after its start-up; anything else gets
 * `deny`.  Argument rules compare the low 32 bits of one argument with a list
 * of allowed values.  Foreign architectures and x32 are killed.  In builds with
 * the sanitizers (SANITIZED) what their runtimes need is allowed too.
 */
#ifndef BASE_SANDBOX_H
#define BASE_SANDBOX_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct sandbox_arg {
	int nr;                 /* system call, SYS_* */
	unsigned arg;           /* which argument, 0..5 */
	const uint32_t *values; /* allowed; static */
	size_t nvalues;
};

enum sandbox_deny { SANDBOX_DENY_EPERM, SANDBOX_DENY_KILL };

/* `allowed`: calls without argument rules.  no_new_privs must be set.  All threads (TSYNC). */
MUST_USE int sandbox_enter(const int *allowed, size_t n, const struct sandbox_arg *args,
        size_t nargs, enum sandbox_deny deny, struct err *e);

#endif
