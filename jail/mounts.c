#include "jail/mounts.h"
#include "base/fd.h"

#include <fcntl.h>
#include <unistd.h>

/* The last line that the file system wrote about why it refused, or "". */
static void fs_reason(int fs, char *out, size_t size)
{
	ssize_t n = read(fs, out, size - 1);
	out[n > 0 ? n : 0] = '\0';
}

static int fs_options(int fs, const char *type, const char *const *options, struct err *e)
{
	for (; options && *options; options += 2) {
		if (fsconfig(fs, FSCONFIG_SET_STRING, options[0], options[1], 0) == 0)
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
		char reason[128];
		fs_reason(fs, reason, sizeof(reason));
		errno = -code;
		return err_errno(e, "%s: cannot be made %s", type, reason);
	}
	int mount = fsmount(fs, FSMOUNT_CLOEXEC, (unsigned)attrs);
	return mount < 0 ? err_errno(e, "%s: cannot be mounted", type) : mount;
}

int mounts_clone(int dirfd, const char *path, uint64_t attrs, int idmap_userns, struct err *e)
{
	unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW;
	if (!*path)
		flags |= AT_EMPTY_PATH;
	auto_close int mount = open_tree(dirfd, path, flags);
	if (mount < 0)
		return err_errno(e, "clone of mount %s", path);
	struct mount_attr a = {.attr_set = attrs, .propagation = MS_PRIVATE};
	if (idmap_userns >= 0) {
		a.attr_set |= MOUNT_ATTR_IDMAP;
		a.userns_fd = (uint64_t)idmap_userns;
	}
	if (mount_setattr(mount, "", AT_EMPTY_PATH, &a, sizeof(a)) == 0)
		return take_fd(mount);
	if (idmap_userns >= 0 && (errno == EINVAL || errno == EOPNOTSUPP))
		return err_set(e, -errno,
		        "layer idmap: the file system of %s has no idmapped mounts",
		        *path ? path : "the directory");
	return err_errno(e, "attributes of mount %s", path);
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
