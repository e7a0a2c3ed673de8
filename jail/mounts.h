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

#include <stdint.h>
#include <sys/mount.h>

#define MOUNTS_NSD (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define MOUNTS_RO  (MOUNTS_NSD | MOUNT_ATTR_RDONLY)

/* A new file system instance of `type` with `options`, "key", "value" pairs ending with NULL.
 * Detached mount fd (owned) or -errno. */
MUST_USE int mounts_new(
        const char *type, uint64_t attrs, const char *const *options, struct err *e);

/* A private clone of what dirfd/path names ("" for dirfd itself; links are not followed at the
 * end), without its submounts, with `attrs`; idmapped by that user namespace unless it is -1.
 * Detached mount fd (owned) or -errno. */
MUST_USE int mounts_clone(
        int dirfd, const char *path, uint64_t attrs, int idmap_userns, struct err *e);

/* Adds attributes to a mount, attached or not. */
MUST_USE int mounts_restrict(int mount, uint64_t attrs, struct err *e);

/* Attaches at dirfd/path and closes `mount` (takes). */
MUST_USE int mounts_attach(int mount, int dirfd, const char *path, struct err *e);

/* Changes "size" or the like of a tmpfs that is mounted already. */
MUST_USE int mounts_reconfigure(int mount, const char *const *options, struct err *e);

#endif
