/*
 * secret_command.h - a program of root's that prints a secret.
 *
 * It runs under an id of its own without any capability, with PATH alone as its environment, its
 * errors thrown away (they could hold the secret), in a process group that ends with it.
 */
#ifndef JAIL_SECRET_COMMAND_H
#define JAIL_SECRET_COMMAND_H

#include "base/err.h"
#include "policy/policy.h"

#include <stddef.h>
#include <stdint.h>

/* What it printed, at most `size` bytes (so that who wants less sees that it is too long): how
 * many, or -errno.  -ETIME when it has not ended by `until_ms` (monotonic). */
MUST_USE int secret_command(
        const struct secret_def *def, int64_t until_ms, char *to, size_t size, struct err *e);

#endif
