/*
 * template.h - the root of all jails of one policy, built once, held as a mount
 * namespace that no process lives in.
 *
 * What a jail gets of it is made by root.h, and what is its own (proc, devpts, shm, tmp, run,
 * home, workspace, mnt, agent) is attached to that.  The root is a small read-only tmpfs of ours;
 * /usr of the host (or of an image directory) is a read-only clone; /etc is written by
 * us and never the host's; /dev holds six nodes.
 *
 * What a jail can learn from /proc/self/mountinfo: the device and the path in its
 * file system of every bind, that is "/usr", the policy's mount sources, and for a
 * session the path of its workspace (the kernel prints the dentry's path, and an
 * idmapped bind has no other name).  Nothing but the path is reachable.
 */
#ifndef JAIL_TEMPLATE_H
#define JAIL_TEMPLATE_H

#include "base/err.h"
#include "policy/policy.h"

/* A mount of a template, above before below. */
struct template_mount {
	char *path;     /* owned, absolute */
	uint64_t attrs; /* MOUNT_ATTR_* that it has */
};

struct template
{
	int mntns; /* owned */
	/* Owned: a mount namespace of one empty directory with a place for mounts,
	 * TEMPLATE_PLACE, in which roots of jails begin. */
	int bare;
	uint64_t masks; /* bit i: template_mask(i) exists on this host and is masked in a jail */
	struct template_mount *mounts; /* owned */
	size_t nmounts;
};

#define TEMPLATE_NONE                                                                              \
	{                                                                                          \
		.mntns = -1, .bare = -1, .masks = 0                                                \
	}
#define TEMPLATE_PLACE "/mnt"
/* An empty directory with a file system of its own: a second layer for overlays (6.1 makes none of
 * one layer without an upper). */
#define TEMPLATE_EMPTY "/sys"
/* Where a policy with inodes of its own shows file i of its mounts: the directory that the file is
 * in, and a link that says its name there.  Covered in every jail. */
#define TEMPLATE_PARENT "/run/%u"
#define TEMPLATE_NAME   "/run/%u.name"

/* Needs CAP_SYS_ADMIN in the initial user namespace and a single thread (it forks). */
MUST_USE int template_make(const struct policy *p, struct template *ret, struct err *e);
void template_done(struct template *t); /* harmless twice */

/* The directory that holds /usr and the rest of the policy's root, "/" for the host's.  An image is
 * root's alone and not the host's own root.  fd (owned) or -errno. */
MUST_USE int template_source(const struct policy *p, struct err *e);

/* Path of mask i ("/proc/kcore"), NULL past the end; *ret_dir tells file from directory. */
const char *template_mask(unsigned i, int *ret_dir);

#endif
