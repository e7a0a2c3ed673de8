/*
 * root.h - the root of one jail, made ahead as a mount namespace of its own.
 *
 * What a template shows, and attached to it the mounts of the jail's kit.  With filesystem.private
 * each directory of the template is an overlay of the jail's own: the same files below other
 * inodes, so that what the kernel keeps by inode (locks, watches, leases) ends at the jail, while
 * pages are still those of the file below and in memory once.  A file that the policy mounts comes
 * out of an overlay over its directory.  What is writable for many is shared, as root said.
 */
#ifndef JAIL_ROOT_H
#define JAIL_ROOT_H

#include "base/err.h"
#include "jail/template.h"
#include "policy/policy.h"

struct root_mount {
	int mount; /* detached; borrowed */
	const char *target;
};

/* The mount namespace: fd (owned; its last close waits for the kernel) or -errno.  `authority`: its
 * memfd (borrowed), whose certificate the jail trusts, or -1.  The calling process must be
 * single-threaded. */
MUST_USE int root_make(const struct policy *p, const struct template *t,
        const struct root_mount *mounts, size_t n, int authority, struct err *e);

#endif
