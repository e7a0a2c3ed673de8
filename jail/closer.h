/*
 * closer.h - closing descriptors whose last close waits for the kernel.
 *
 * The release of a packet socket waits for an RCU grace period: 12 to 20 ms in
 * which a single-threaded daemon would do nothing else, for every jail that ends;
 * the last close of a mount namespace takes up to one more; that of an image unmounts it and waits
 * for its disk.  So such descriptors
 * are given to a small process without privileges, whose
 * threads hold each a moment longer than agentbox-egress needs to let go of its
 * copy, and then pay the wait.  There are more of them while some are stuck.
 */
#ifndef JAIL_CLOSER_H
#define JAIL_CLOSER_H

#include "base/err.h"

#include <sys/types.h>

struct closer {
	int socket; /* owned */
	pid_t pid;
};

#define CLOSER_NONE                                                                                \
	{                                                                                          \
		.socket = -1, .pid = -1                                                            \
	}

/* Forks: call it early, single-threaded, before secrets are in memory. */
MUST_USE int closer_start(struct closer *ret, struct err *e);
/* Takes fd; closes it here when `c` is NULL or cannot take more. */
void closer_give(const struct closer *c, int fd);
void closer_stop(struct closer *c); /* harmless twice */

#endif
