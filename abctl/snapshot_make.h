/*
 * snapshot_make.h - `abctl snapshot create`.
 *
 * A session that is to be kept as it is takes one request.  A directory of this machine, and what
 * is to be prepared, go through a session that is made for it and removed after it: there the
 * directory arrives as a tar archive on the stdin of a jail's tar, and there the command runs.
 */
#ifndef ABCTL_SNAPSHOT_MAKE_H
#define ABCTL_SNAPSHOT_MAKE_H

#include "abctl/verb.h"

struct snapshot_args {
	const char *from, *prepare, *policy;
	bool force;
};

/* The exit code. */
int snapshot_make(const struct cli *cli, const struct snapshot_args *a, const char *name);

#endif
