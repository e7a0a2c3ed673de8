/*
 * Theory of operation: before Linux 6.15 the layers of an overlay must be
 * attached mounts, so the child attaches the tmpfs at /mnt, the image's trees
 * inside it, makes the overlays, and lets go of /mnt: the overlays hold what they
 * need.  The tmpfs has for tree i the directories i/low, i/up and i/work.
 */
#include "jail/overlay.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/mem.h"
#include "jail/authority.h"
#include "jail/etc.h"
#include "jail/mounts.h"
#include "jail/sysc.h"
#include "jail/template.h"
#include "jail/trust.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AT "/mnt"

#define TREE(i, name)                                                                              \
	{                                                                                          \
		name, AT "/" #i "/low", AT "/" #i "/up", AT "/" #i "/work"                         \
	}
static const struct {
	const char *path, *low, *up, *work;
} trees[] = {
        TREE(0, "/usr"),
        TREE(1, "/etc"),
        TREE(2, "/var"),
        TREE(3, "/opt"),
        TREE(4, "/bin"), /* links into /usr on most systems, then without an overlay */
        TREE(5, "/sbin"),
        TREE(6, "/lib"),
        TREE(7, "/lib32"),
        TREE(8, "/lib64"),
        TREE(9, "/libx32"),
};
_Static_assert(ARRAY_LEN(trees) == OVERLAY_TREES, "overlay.lower has one of each");

bool overlay_wanted(const struct policy *p)
{
	return (p->flags & POLICY_INNER_ROOT_PACKAGES) && p->root == POLICY_ROOT_IMAGE;
}

const char *overlay_tree(size_t i)
{
	return i < ARRAY_LEN(trees) ? trees[i].path : NULL;
}

/* ---- in agentboxd ---- */

/* The same place in the tmpfs itself. */
static const char *below(const char *path)
{
	return path + strlen(AT "/");
}

/* A directory with the owner and mode that its counterpart in the image has. */
static int new_like(int at, const char *name, const struct stat *st, uint32_t base, struct err *e)
{
	if (mkdirat(at, name, 0700) < 0 ||
	        fchownat(at, name, base + st->st_uid, base + st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	        fchmodat(at, name, st->st_mode & 07777, 0) < 0)
		return err_errno(e, "directory of the layer");
	return 0;
}

static int add_tree(struct overlay *o, size_t i, int image, const struct kit *k, struct err *e)
{
	const char *name = trees[i].path + 1;
	struct stat st;
	if (fstatat(image, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_errno(e, "image's %s", trees[i].path);
	if (!S_ISDIR(st.st_mode))
		return 0;
	if (st.st_uid >= ID_BLOCK || st.st_gid >= ID_BLOCK)
		return err_set(e, -EPERM, "image's %s belongs to %u:%u; remedy: chown root:root",
		        trees[i].path, st.st_uid, st.st_gid);
	o->lower[i] = mounts_clone(image, name, MOUNTS_RO, k->userns, e);
	if (o->lower[i] < 0)
		return err_wrap(e, "image's %s", trees[i].path);
	char top[8];
	(void)snprintf(top, sizeof(top), "%zu", i);
	if (mkdirat(o->upper, top, 0700) < 0)
		return err_errno(e, "directory of the layer");
	const struct stat plain = {.st_mode = 0700};
	int r = new_like(o->upper, below(trees[i].low), &plain, k->base, e);
	if (r == 0)
		r = new_like(o->upper, below(trees[i].work), &plain, k->base, e);
	return r < 0 ? r : new_like(o->upper, below(trees[i].up), &st, k->base, e);
}

/* Directory `path` of tree i's layer, each part like the image's where that has it.  fd (owned). */
static int new_path(const struct overlay *o, size_t i, const char *path, int image,
        const struct kit *k, struct err *e)
{
	const char *up = below(trees[i].up);
	for (size_t n = strcspn(path, "/");; n += 1 + strcspn(path + n + 1, "/")) {
		auto_free char *from = xasprintf("%s/%.*s", trees[i].path + 1, (int)n, path);
		auto_free char *to = xasprintf("%s/%.*s", up, (int)n, path);
		struct stat st;
		if (fstatat(image, from, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
			st = (struct stat){.st_mode = 0755};
		int r = new_like(o->upper, to, &st, k->base, e);
		if (r < 0)
			return r;
		if (!path[n])
			break;
	}
	auto_free char *whole = xasprintf("%s/%s", up, path);
	int fd = openat(o->upper, whole, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_errno(e, "directory of the layer") : fd;
}

/* What the jail trusts, and what update-ca-certificates goes by when a package has it run. */
static int add_trust(
        const struct overlay *o, size_t i, int image, const struct kit *k, struct err *e)
{
	static const char *const where[OVERLAY_TREES] = {
	        "local/share/ca-certificates", &POLICY_TRUST_DIR[sizeof("/etc")]};
	struct authority a;
	if (k->authority < 0 || !where[i])
		return 0;
	auto_close int dir = new_path(o, i, where[i], image, k, e);
	int r = dir < 0 ? dir : authority_read(k->authority, &a, e);
	if (r == 0)
		r = i ? trust_fill(dir, image, &a, k->base, e) : trust_add(dir, &a, k->base, e);
	explicit_bzero(&a, sizeof(a));
	return r;
}

/* What of the image's would not be true in a jail, and the place of /opt/agent. */
static int add_own(const struct overlay *o, int image, const struct kit *k, struct err *e)
{
	const struct stat place = {.st_mode = 0755};
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(trees); i++) {
		if (o->lower[i] < 0)
			continue;
		auto_close int up = openat(o->upper, below(trees[i].up),
		        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (up < 0)
			return err_errno(e, "directory of the layer");
		if (strcmp(trees[i].path, "/etc") == 0)
			r = etc_personal(up, image, k->base, e);
		else if (strcmp(trees[i].path, "/opt") == 0)
			r = new_like(up, "agent", &place, k->base, e);
		if (r == 0)
			r = add_trust(o, i, image, k, e);
	}
	return r;
}

static int new_upper(const struct kit *k, struct err *e)
{
	char size[24], inodes[24];
	(void)snprintf(size, sizeof(size), "%llu", (unsigned long long)kit_disk_bytes(&k->limits));
	(void)snprintf(
	        inodes, sizeof(inodes), "%llu", (unsigned long long)kit_disk_inodes(&k->limits));
	const char *const options[] = {"size", size, "nr_inodes", inodes, "mode", "0700", NULL};
	return mounts_new("tmpfs", MOUNTS_NSD, options, e);
}

int overlay_make(const struct policy *p, const struct kit *k, struct overlay *ret, struct err *e)
{
	struct overlay o = {.upper = -1};
	memset(o.lower, -1, sizeof(o.lower));
	if (!overlay_wanted(p)) {
		*ret = o;
		return 0;
	}
	auto_close int image = template_source(p, e);
	if (image < 0)
		return image;
	int r = o.upper = new_upper(k, e);
	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(trees); i++)
		r = add_tree(&o, i, image, k, e);
	if (r >= 0)
		r = add_own(&o, image, k, e);
	if (r < 0) {
		overlay_done(&o);
		return err_wrap(e, "layer rootfs: writable layer");
	}
	*ret = o;
	return 0;
}

void overlay_done(struct overlay *o)
{
	fd_close(take_fd(o->upper));
	for (size_t i = 0; i < ARRAY_LEN(o->lower); i++)
		fd_close(take_fd(o->lower[i]));
}

/* ---- in the child ---- */

SYSC_CHILD static long attach(int mount, const char *path)
{
	return sysc(SYS_move_mount, mount, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
}

SYSC_CHILD static long mount_tree(size_t i)
{
	long fs = sysc(SYS_fsopen, "overlay", FSOPEN_CLOEXEC);
	if (fs < 0)
		return fs;
	long r = sysc(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "lowerdir", trees[i].low, 0);
	if (r == 0)
		r = sysc(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "upperdir", trees[i].up, 0);
	if (r == 0)
		r = sysc(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "workdir", trees[i].work, 0);
	if (r == 0)
		r = sysc(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, 0, 0, 0);
	long mount = r < 0 ? r : sysc(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNTS_NSD);
	sysc(SYS_close, fs);
	if (mount < 0)
		return mount;
	r = attach((int)mount, trees[i].path);
	sysc(SYS_close, mount);
	return r;
}

SYSC_CHILD long overlay_mount(const struct overlay *o)
{
	if (o->upper < 0)
		return 0;
	long r = attach(o->upper, AT);
	for (size_t i = 0; r == 0 && i < OVERLAY_TREES; i++) {
		if (o->lower[i] < 0)
			continue;
		r = attach(o->lower[i], trees[i].low);
		if (r == 0)
			r = mount_tree(i);
	}
	return r < 0 ? r : sysc(SYS_umount2, AT, MNT_DETACH);
}
