/*
 * checkup.h - the host's own switches (policy/checks.h), read where root may read all of them.
 *
 * A few small files of /proc and /sys, read anew for each `abctl doctor`.
 */
#ifndef JAIL_CHECKUP_H
#define JAIL_CHECKUP_H

#include "policy/checks.h"

#include <stdbool.h>
#include <stdint.h>

struct checkup {
	uint8_t state[CHECK_COUNT];               /* enum check_state */
	char found[CHECK_COUNT][CHECK_FOUND_MAX]; /* what was read, for people */
};

/* `root` is "/", or a directory with proc/ and sys/ (tests); cpu_shares: jails have shares of the
 * processors (layer limit.cpu).  Never fails: what this kernel does not have is said, and what
 * cannot be read is advice. */
void checkup_read(const char *root, bool cpu_shares, struct checkup *ret);

#endif
