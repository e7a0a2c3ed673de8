/*
 * view.h - what one jail sees beyond its kit's root: the list of mounts that the child attaches.
 *
 * A session's directories through the idmap, the agent's files, and binds.  Places for binds are
 * made here: below /mnt in a small read-only tmpfs of the jail, below /workspace in the workspace
 * itself, walking it by descriptors because a former run may have planted links.
 */
#ifndef JAIL_VIEW_H
#define JAIL_VIEW_H

#include "base/err.h"
#include "jail/enter.h"
#include "jail/launch.h"
#include "jail/overlay.h"

struct view {
	struct enter_mount mounts[ENTER_MOUNTS]; /* in the order of attaching */
	size_t n;
	struct overlay overlay;                  /* owned; below the mounts */
	struct landlock_rule rules[ENTER_RULES]; /* the same, to Landlock */
	size_t nrules;
	int owned[ENTER_MOUNTS]; /* closed by view_done once the child has them */
	size_t nowned;
};

MUST_USE int view_make(const struct launch_spec *spec, struct view *ret, struct err *e);
void view_done(struct view *v);

#endif
