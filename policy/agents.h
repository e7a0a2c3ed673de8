/*
 * agents.h - the agents that came with this build, for who checks files without a
 * daemon: harnesses/agents beside the tree or the installation of this program.
 */
#ifndef POLICY_AGENTS_H
#define POLICY_AGENTS_H

#include "policy/harness.h"

enum { AGENTS_MAX = 256 };

struct agents {
	struct agent *v[AGENTS_MAX]; /* owned; those that do not parse are left out */
	size_t n;
	char *dir; /* owned: where they are */
};

/* 0, or -ENOENT: there is no such directory. */
MUST_USE int agents_load(struct agents *ret, struct err *e);
void agents_done(struct agents *a); /* zeroed is fine */

#endif
