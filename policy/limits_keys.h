/*
 * limits_keys.h - the limits by name, with their bounds: `limits:` of a policy, `narrow.limits:`
 * and `limits:` of a harness, `limits` of a request.
 */
#ifndef POLICY_LIMITS_KEYS_H
#define POLICY_LIMITS_KEYS_H

#include "policy/keys.h"

/* Offsets within struct limits.  A policy may say `none`; who narrows may not: it would widen. */
extern const struct key_table limits_keys, narrow_limits_keys;

/* The bounds of what a policy and `limits:` of a harness both have. */
/* 32 MiB: a shell and its tools; node alone takes 40 and then says so by itself. */
#define LIMITS_MEMORY_LEAST ((uint64_t)32 << 20)
#define LIMITS_PIDS_LEAST   8
#define LIMITS_PIDS_MOST    4194304
#define LIMITS_CPUS_LEAST   50
#define LIMITS_CPUS_MOST    4096000
#define LIMITS_DISK_LEAST   ((uint64_t)1 << 20)
#define LIMITS_INODES_LEAST 64
#define LIMITS_OUTPUT_LEAST 4096

/* The row of narrow_limits_keys of the field at this offset of struct limits; or of a name, NULL
 * where there is none. */
const struct key *limits_row(size_t offset);
const struct key *limits_named(const char *name);

#endif
