#include "jail/snapshot_copy.h"
#include "base/fd.h"
#include "base/mem.h"
#include "jail/copy.h"
#include "jail/disks.h"
#include "jail/image.h"
#include "jail/layers.h"
#include "jail/merge.h"
#include "jail/mounts.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- what is copied ---- */

static int session_of(const struct state *s, const char *id, struct err *e)
{
	char name[SESSION_NAME];
	int r = session_name(s, id, name, e);
	if (r < 0)
		return r == -ENOENT ? err_set(e, r,
		                              "session %s has no files yet (remedy: a run of it "
		                              "first)",
		                              id)
		                    : r;
	int dir = openat(s->sessions, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return dir < 0 ? err_errno(e, "session %s", id) : dir;
}

/* The directory that has `workspace`, as a detached mount (owned). */
static int open_top(int dir, struct err *e)
{
	if (faccessat(dir, DISKS_IMAGE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return image_mount(dir, DISKS_IMAGE, e);
	return mounts_clone(dir, "", MOUNTS_RO, -1, e);
}

/* Detached mount (owned) of what the workspace shows.  From here on this process has a mount
 * namespace of its own. */
static int open_source(const struct state *s, int dir, struct err *e)
{
	auto_free char *at = xasprintf("%s/trash", s->path); /* any directory */
	auto_close int top = open_top(dir, e);
	if (top < 0)
		return top;
	if (faccessat(top, "workspace", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return errno != ENOENT
		               ? err_errno(e, "workspace")
		               : err_set(e, -EINVAL,
		                         "its workspace is in memory, and gone with each jail");
	auto_close int tree = -1, lower = -1;
	int r = layers_open(s, dir, &tree, e);
	if (r == 0 && tree >= 0)
		r = lower = mounts_clone(tree, "", MOUNTS_RO, -1, e);
	if (r < 0)
		return r;
	if (unshare(CLONE_NEWNS) < 0)
		return err_errno(e, "own mounts");
	r = mounts_private(e);
	if (r < 0)
		return r;
	if (lower >= 0)
		return merge_read(take_fd(top), lower, at, e);
	if (move_mount(top, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_errno(e, "mount on %s", at);
	return mounts_clone(top, "workspace", MOUNTS_RO, -1, e);
}

/* ---- copying ---- */

/* Its ".." leads out of neither: both are mounts of their own. */
static int copy_session(const struct state *s, const struct jail_snapshot_ask *m,
        const struct layers_new *n, struct err *e)
{
	auto_close int dir = session_of(s, m->session, e);
	if (dir < 0)
		return dir;
	/* Before there is another mount namespace, in which it could not be cloned. */
	auto_close int to = mounts_clone(n->tree, "", MOUNTS_NSD, -1, e);
	auto_close int from = to < 0 ? -1 : open_source(s, dir, e);
	return from < 0 ? e->code : copy_tree(from, to, e);
}

int snapshot_copy(const struct state *s, const struct jail_snapshot_ask *m, struct err *e)
{
	auto_layers_new struct layers_new n = LAYERS_NEW_NONE;
	bool replace = m->flags & JAIL_SNAPSHOT_REPLACE;
	struct jail_snapshot facts = {.version = JAIL_SNAPSHOT_VERSION};
	memcpy(facts.name, m->name, sizeof(facts.name));
	memcpy(facts.session, m->session, sizeof(facts.session));
	int r = layers_free_name(s, m->name, replace, e);
	if (r == 0)
		r = layers_begin(s, &n, e);
	if (r == 0)
		r = copy_session(s, m, &n, e);
	if (r == 0)
		r = layers_land(s, &n, &facts, replace, e);
	return r < 0 ? err_wrap(e, "snapshot '%s'", m->name) : 0;
}
