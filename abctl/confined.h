/*
 * confined.h - what takes a stranger's archive apart: a process of its own that can make
 * directories and files below one directory, and nothing else.
 *
 * It has an id without a capability, that directory as its root, and a filter.  The directory must
 * be its own and reachable for nobody else.
 */
#ifndef ABCTL_CONFINED_H
#define ABCTL_CONFINED_H

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

struct confined {
	pid_t pid;
	int said; /* owned: one struct err, when it has failed */
};

struct confined_spec {
	int tree; /* borrowed */
	uint32_t uid, gid;
	uint64_t file_max; /* bytes of one file */
	/* What it does: 0, or -errno with *e.  All that it reads is open already. */
	int (*work)(void *ctx, struct err *e);
	void *ctx;
};
MUST_USE int confined_start(struct confined *c, const struct confined_spec *s, struct err *e);
/* Waits until it has ended. */
MUST_USE int confined_end(struct confined *c, struct err *e);

#endif
