/*
 * host.h - what this host has, layer by layer, found out by trying.
 *
 * host_probe makes each layer once in throw-away children and namespaces and
 * records a line and, where it failed, the remedy.  `abctl doctor` prints the
 * table; host_require refuses a policy whose required layers are missing.
 */
#ifndef JAIL_HOST_H
#define JAIL_HOST_H

#include "jail/cgroup.h"
#include "policy/layers.h"
#include "policy/policy.h"

struct host {
	uint32_t layers;                          /* bits of enum layer that work here */
	uint32_t fallback;                        /* bits where a weaker means stands in */
	char detail[LAYER_COUNT][LAYER_TEXT_MAX]; /* what was found */
	char remedy[LAYER_COUNT][LAYER_TEXT_MAX]; /* "" where the layer works */
	/* jail/selftest.h */
	uint32_t disproved;          /* bits that a probe found and the canary did not */
	char unproven[ERR_TEXT_MAX]; /* why the canary could not look, "" where it did */
	int64_t selftest_us;         /* how long it took */
};

/* `state_dirfd` is where workspaces will be (the idmap layer depends on its file system);
 * `lease_base` is the first host id of a block that is free to use meanwhile.  Never fails: what
 * cannot be tried is missing.  limit.disk is found out by disks.h. */
void host_probe(
        const struct cgroup_tree *t, int state_dirfd, uint32_t lease_base, struct host *ret);

/* Records a layer that was tried elsewhere: r < 0, `lack` and `remedy`; else `have`. */
void host_found(struct host *h, enum layer l, int r, const char *have, const char *lack,
        const char *remedy);

/* As policy_proven and policy_met. */
MUST_USE int host_require(const struct host *h, const struct policy *p, struct err *e);

#endif
