#include "jail/mounts.h"
#include "base/fd.h"
#include "jail/home.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* An empty directory of every template. */
#define SPLIT_AT "/mnt"

/* The last line that the file system wrote about why it refused, or "". */
static void fs_reason(int fs, char *out, size_t size)
{
	ssize_t n = read(fs, out, size - 1);
	out[n > 0 ? n : 0] = '\0';
}

static int fs_options(int fs, const char *type, const char *const *options, struct err *e)
{
	for (; options && *options; options += 2) {
		bool flag = options[1][0] == '\0';
		if (fsconfig(fs, flag ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING, options[0],
		            flag ? NULL : options[1], 0) == 0)
			continue;
		int r = err_errno(e, "%s: option %s=%s", type, options[0], options[1]);
		return r;
	}
	return 0;
}

int mounts_new(const char *type, uint64_t attrs, const char *const *options, struct err *e)
{
	auto_close int fs = fsopen(type, FSOPEN_CLOEXEC);
	if (fs < 0)
		return err_errno(e, "%s: this kernel has no such file system", type);
	int r = fs_options(fs, type, options, e);
	if (r < 0)
		return r;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) {
		int code = -errno;
		char reason[256];
		fs_reason(fs, reason, sizeof(reason));
		errno = -code;
		return err_errno(e, "%s: cannot be made %s", type, reason);
	}
	int mount = fsmount(fs, FSMOUNT_CLOEXEC, (unsigned)attrs);
	return mount < 0 ? err_errno(e, "%s: cannot be mounted", type) : mount;
}

int mounts_finish(int mount, uint64_t attrs, int idmap_userns, struct err *e)
{
	struct mount_attr a = {.attr_set = attrs, .propagation = MS_PRIVATE};
	if (idmap_userns >= 0) {
		a.attr_set |= MOUNT_ATTR_IDMAP;
		a.userns_fd = (uint64_t)idmap_userns;
	}
	if (mount_setattr(mount, "", AT_EMPTY_PATH, &a, sizeof(a)) == 0)
		return 0;
	if (idmap_userns >= 0 && (errno == EINVAL || errno == EOPNOTSUPP))
		return err_set(e, -errno, "layer idmap: its file system has no idmapped mounts");
	return err_errno(e, "attributes of mount");
}

int mounts_clone(int dirfd, const char *path, uint64_t attrs, int idmap_userns, struct err *e)
{
	unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW;
	if (!*path)
		flags |= AT_EMPTY_PATH;
	auto_close int mount = open_tree(dirfd, path, flags);
	if (mount < 0)
		return err_errno(e, "clone of mount %s", path);
	int r = mounts_finish(mount, attrs, idmap_userns, e);
	return r < 0 ? err_wrap(e, "%s", *path ? path : "the directory") : take_fd(mount);
}

static void visit_done(struct mounts_visit *v)
{
	fd_close(v->home);
	fd_close(v->ns);
	fd_close(v->root);
	fd_close(v->cwd);
}

int mounts_enter(struct mounts_visit *v, int mntns, struct err *e)
{
	*v = (struct mounts_visit){.ns = open("/proc/self/ns", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	        .root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
	        .cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)};
	v->home = v->ns < 0 ? -1 : openat(v->ns, "mnt", O_RDONLY | O_CLOEXEC);
	int r = 0;
	if (v->home < 0 || v->root < 0 || v->cwd < 0)
		r = err_errno(e, "the way back from a mount namespace");
	else if (setns(mntns, CLONE_NEWNS) < 0)
		r = err_errno(e, "layer mountns: entering the template's");
	if (r < 0)
		visit_done(v);
	return r;
}

int mounts_here(const struct mounts_visit *v)
{
	return openat(v->ns, "mnt", O_RDONLY | O_CLOEXEC);
}

/* There and back again, or die: in the wrong mount namespace nothing here means what it says. */
void mounts_leave(struct mounts_visit *v)
{
	struct home ns = {0}, root = {0}, cwd = {0};
	while (home_retry(&ns, setns(v->home, CLONE_NEWNS), "mount namespace"))
		;
	while (home_retry(&root, fchdir(v->root) < 0 ? -1 : chroot("."), "root directory"))
		;
	while (home_retry(&cwd, fchdir(v->cwd), "working directory"))
		;
	visit_done(v);
}

static int clone_parts(int mount, const char *const *names, size_t n, int *ret, struct err *e)
{
	if (move_mount(mount, "", AT_FDCWD, SPLIT_AT, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_errno(e, "mount on " SPLIT_AT);
	int r = 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		char path[64];
		(void)snprintf(path, sizeof(path), SPLIT_AT "/%s", names[i]);
		ret[i] = open_tree(
		        AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
		if (ret[i] < 0)
			r = err_errno(e, "clone of mount %s", names[i]);
	}
	struct home h = {0}; /* else every jail of that policy would see it */
	while (home_retry(&h, umount2(SPLIT_AT, MNT_DETACH | UMOUNT_NOFOLLOW), "empty template"))
		;
	return r;
}

int mounts_split(int mount, int mntns, const char *const *names, size_t n, int *ret, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		ret[i] = -1;
	struct mounts_visit v;
	int r = mounts_enter(&v, mntns, e);
	if (r < 0)
		return r;
	r = clone_parts(mount, names, n, ret, e);
	mounts_leave(&v);
	for (size_t i = 0; r < 0 && i < n; i++)
		fd_close(take_fd(ret[i]));
	return r;
}

int mounts_private(struct err *e)
{
	struct mount_attr private = {.propagation = MS_PRIVATE};
	if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &private, sizeof(private)) < 0)
		return err_errno(e, "layer mountns: private propagation");
	return 0;
}

int mounts_restrict(int mount, uint64_t attrs, struct err *e)
{
	struct mount_attr a = {.attr_set = attrs};
	if (mount_setattr(mount, "", AT_EMPTY_PATH, &a, sizeof(a)) < 0)
		return err_errno(e, "attributes of mount");
	return 0;
}

int mounts_attach(int mount, int dirfd, const char *path, struct err *e)
{
	auto_close int owned = mount;
	if (move_mount(owned, "", dirfd, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_errno(e, "mount on %s", path);
	return 0;
}

int mounts_reconfigure(int mount, const char *const *options, struct err *e)
{
	auto_close int fs = fspick(mount, "", FSPICK_EMPTY_PATH | FSPICK_CLOEXEC);
	if (fs < 0)
		return err_errno(e, "reconfigure mount");
	int r = fs_options(fs, "tmpfs", options, e);
	if (r < 0)
		return r;
	if (fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0)
		return err_errno(e, "reconfigure mount");
	return 0;
}
