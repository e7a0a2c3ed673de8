/*
 * usage.h - how much a jail has moved by each rule of its policy: rates and
 * bounds.
 *
 * A rate is a bucket that holds a quarter of a second; who finds it empty waits
 * for the jail's next tick.  A bound is of the jail's whole life, whatever
 * happens to the policy's order of rules meanwhile.
 */
#ifndef EGRESS_USAGE_H
#define EGRESS_USAGE_H

#include "egress/names.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { USAGE_WAIT_MS = 250 }; /* when to ask again after 0 */

struct rule_usage {
	char rule[RULE_TEXT_MAX]; /* whose it is, across changes of the policy */
	uint64_t bytes;
	int64_t allowance, filled_ms;
};

struct usage {
	struct rule_usage *of; /* owned, one a rule */
	uint32_t n;
};

/* Keeps what was counted for rules that are still there. */
void usage_follow(struct usage *u, const struct policy *p);
void usage_done(struct usage *u);

/* Of `want` bytes, how many may move now: 0 for later, -EDQUOT when the bound is used up. */
ssize_t usage_allow(struct usage *u, const struct policy *p, int rule, size_t want);
/* They have moved, in either direction. */
void usage_count(struct usage *u, int rule, uint64_t bytes);

#endif
