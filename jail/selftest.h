/*
 * selftest.h - a real jail whose program looks whether each layer holds.
 *
 * host_probe says what can be made; this says what is in force once it was: the canary
 * (proto/canary.h) is started on the way of every jail, its record is compared with what only
 * shows from outside, and it is killed.  The canary is the final word: a layer that it does not
 * find, or that nobody looked at, is missing, and without a canary nothing is proven.
 */
#ifndef JAIL_SELFTEST_H
#define JAIL_SELFTEST_H

#include "base/err.h"
#include "jail/cgroup.h"
#include "jail/closer.h"
#include "jail/host.h"
#include "policy/policy.h"

#include <stdint.h>

struct selftest_spec {
	const struct policy *policy; /* its filter and flags are loaded; root and limits are ours */
	const struct cgroup_tree *tree;
	const struct closer *closer;
	uint32_t base;      /* first id of a leased block */
	int dir;            /* a directory of ours on the file system of workspaces */
	int init;           /* launch_load("agentbox-init") */
	const char *canary; /* program, absolute */
};

/* It takes about 30 ms; a loaded machine may take a hundred times that. */
enum { SELFTEST_MS = 10000 };

/* Takes out of `h` what the canary does not find; h->proven says how it went.  The caller is
 * blocked, at most about SELFTEST_MS. */
void selftest_run(const struct selftest_spec *s, struct host *h);

#endif
