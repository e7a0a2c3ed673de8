/*
 * merge.h - a workspace that stands on a layer: an overlay of the layer's tree, which is never
 * written, and of the directories `upper` and `work` of the session's own.
 *
 * The layers pass through the jail's id map before they are merged, for an overlay cannot (and one
 * of idmapped layers can, since Linux 5.19).  What the kernel itself makes in it (whiteouts, the
 * work directory) is then made by an id of the jail, and with no more capabilities than that
 * takes: not CAP_SYS_RESOURCE, with which no project quota and no reserved block would hold.
 *
 * One mode everywhere: host root mounts them, so what is deleted is marked by trusted.* attributes
 * and character devices, which no jail can make or see; redirect_dir, metacopy and index are off.
 */
#ifndef JAIL_MERGE_H
#define JAIL_MERGE_H

#include "base/err.h"

#include <stdint.h>

/* The two in directory `dir`, made where they are missing; they belong to `owner`. */
MUST_USE int merge_prepare(int dir, uint32_t owner, struct err *e);

struct merge {
	int lower;   /* directory: the layer's tree */
	int upper;   /* detached mount of what merge_prepare has made, with its id map; not taken */
	int idmap;   /* user namespace for the layer */
	int mntns;   /* a template's, where they are mounted for a moment */
	uint32_t id; /* host id that the jail's agent has */
};
/* Detached mount (owned), or -errno.  The calling process must be single-threaded. */
MUST_USE int merge_mount(const struct merge *m, struct err *e);
/* To read, as it is stored: `top` is a detached mount whose workspace/upper it is (taken).  For a
 * process that has a mount namespace of its own; `at`: any directory.  As above. */
MUST_USE int merge_read(int top, int lower, const char *at, struct err *e);

#endif
