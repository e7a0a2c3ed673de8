/*
 * mounts.h - detached mounts: made, cloned and attached by descriptor.
 *
 * Everything is finished (read-only, nosuid, idmapped) before it is attached, so
 * there is no writable instant.  Nothing is mounted onto a detached tree: that
 * needs Linux 6.15, and the floor is 6.1.
 */
#ifndef JAIL_MOUNTS_H
#define JAIL_MOUNTS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>

#define MOUNTS_NSD (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define MOUNTS_RO  (MOUNTS_NSD | MOUNT_ATTR_RDONLY)

/* A new file system instance of `type` with `options`, "key", "value" pairs ending with NULL; a
 * value of "" is a flag without one.  Detached mount fd (owned) or -errno. */
MUST_USE int mounts_new(
        const char *type, uint64_t attrs, const char *const *options, struct err *e);

/* A private clone of what dirfd/path names ("" for dirfd itself; links are not followed at the
 * end), without its submounts, with `attrs`; idmapped by that user namespace unless it is -1.
 * Detached mount fd (owned) or -errno. */
MUST_USE int mounts_clone(
        int dirfd, const char *path, uint64_t attrs, int idmap_userns, struct err *e);

/* `attrs` and, unless it is -1, the idmap for a detached mount that nobody has seen yet. */
MUST_USE int mounts_finish(int mount, uint64_t attrs, int idmap_userns, struct err *e);

/* In a mount namespace of the process's own: nothing that is mounted or unmounted from now on shows
 * in the host's, which share theirs under systemd (and pivot_root refuses while they do). */
MUST_USE int mounts_private(struct err *e);

/* ---- in another mount namespace, for a moment ---- */

/* The calling process must be single-threaded. */
struct mounts_visit {
	int home, ns, root, cwd; /* owned, until mounts_leave */
};

/* Goes there, to its root; nothing is held when it fails. */
MUST_USE int mounts_enter(struct mounts_visit *v, int mntns, struct err *e);
/* The mount namespace it is in now: fd (owned), or -1 with errno. */
MUST_USE int mounts_here(const struct mounts_visit *v);
/* Comes back; does not return when there is no way back. */
void mounts_leave(struct mounts_visit *v);

/* Directories of a detached mount as detached mounts of their own (ret[n], owned), the mount itself
 * stays as it is.  Before Linux 6.15 only what is attached can be cloned, so it is attached for a
 * moment in `mntns`, a template's; the calling process must be single-threaded. */
MUST_USE int mounts_split(
        int mount, int mntns, const char *const *names, size_t n, int *ret, struct err *e);

/* Adds attributes to a mount, attached or not. */
MUST_USE int mounts_restrict(int mount, uint64_t attrs, struct err *e);

/* Attaches at dirfd/path and closes `mount` (takes). */
MUST_USE int mounts_attach(int mount, int dirfd, const char *path, struct err *e);

/* Changes "size" or the like of a tmpfs that is mounted already. */
MUST_USE int mounts_reconfigure(int mount, const char *const *options, struct err *e);

#endif
