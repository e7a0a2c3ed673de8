/*
 * overlay.h - a writable layer over an image, for one jail whose policy says
 * `inner_root: packages`.
 *
 * Each tree of the image that a package may write to (/usr, /etc, /var, ...) becomes
 * an overlay of its own: below it the image through the jail's id map, so that what is
 * root's there is inner root's here, above it one tmpfs of the jail.  The image is
 * never written, and the layer goes with the jail.  The overlays are mounted by
 * host root in the jail's mount namespace, so nothing inside can change them.
 *
 * Order of calls: overlay_make; overlay_mount in a raw child of launch.h, with the
 * template's mounts in place; overlay_done.
 */
#ifndef JAIL_OVERLAY_H
#define JAIL_OVERLAY_H

#include "base/err.h"
#include "jail/kit.h"
#include "policy/policy.h"

enum { OVERLAY_TREES = 10 };

struct overlay {
	int upper;                /* detached tmpfs, owned; -1: no overlay at all */
	int lower[OVERLAY_TREES]; /* detached clones of the image's trees, owned; -1: none */
};

/* Whether jails of this policy have one. */
bool overlay_wanted(const struct policy *p);
/* Root directory of tree i in the jail, NULL past the end. */
const char *overlay_tree(size_t i);

MUST_USE int overlay_make(
        const struct policy *p, const struct kit *k, struct overlay *ret, struct err *e);
void overlay_done(struct overlay *o);

/* 0 or -errno. */
long overlay_mount(const struct overlay *o);

#endif
