/*
 * keeps.h - parts of a workspace that its agent cannot write: `narrow.readOnly` of a
 * harness.
 *
 * Done when all is there that is put into a workspace, and before the first
 * program of a run: each path becomes a read-only mount of itself in the jail's mount
 * namespace, and each directory above it a mount of its own, too, so that nothing on the
 * way can be renamed or removed.  Nobody in the jail has a capability over it.
 */
#ifndef JAIL_KEEPS_H
#define JAIL_KEEPS_H

#include "base/err.h"
#include "proto/jail.h"

#include <stdbool.h>

/* Plain relative paths, at most JAIL_KEEPS. */
bool keeps_ok(const struct jail_keeps *k);
/* In the mount namespace of a jail whose agent does not run yet; single-threaded.  -ENOENT: a path
 * is not there; -ELOOP: a link is in the way; -EACCES: it is neither file nor directory, or has
 * another name. */
MUST_USE int keeps_apply(int mntns, const struct jail_keeps *k, struct err *e);

#endif
