#include "jail/keeps.h"
#include "base/fd.h"
#include "jail/broker.h"
#include "jail/mounts.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool keeps_ok(const struct jail_keeps *k)
{
	bool ok = k->n <= JAIL_KEEPS;
	for (uint32_t i = 0; ok && i < k->n; i++)
		ok = msg_text_ok(k->paths[i], sizeof(k->paths[i])) && k->paths[i][0] &&
		     broker_below_ok(k->paths[i]);
	return ok;
}

static int refuse(const char *path, int r, struct err *e)
{
	return err_set(e, r, "narrow.readOnly: %.200s: %s", path,
	        r == -ENOENT || r == -ENOTDIR ? "it is not in the workspace"
	        : r == -ELOOP                 ? "a link is in the way"
	                                      : strerror(-r));
}

/* A file with a second name can be written by that. */
static int check(const char *path, const struct stat *st, struct err *e)
{
	if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
		return err_set(
		        e, -EACCES, "narrow.readOnly: %.200s: neither file nor directory", path);
	if (S_ISREG(st->st_mode) && st->st_nlink > 1)
		return err_set(e, -EACCES,
		        "narrow.readOnly: %.200s: the file has %lu names, by which it could be "
		        "written; remedy: name a directory, or make it a file of its own",
		        path, (unsigned long)st->st_nlink);
	return 0;
}

/* Is something mounted right there already? */
static bool mounted(int fd)
{
	struct statx x;
	return statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &x) == 0 &&
	       (x.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

static int cover(int fd, uint64_t attrs, struct err *e)
{
	int mount = mounts_clone(fd, "", attrs, -1, e);
	if (mount < 0)
		return mount;
	auto_close int owned = mount;
	if (move_mount(owned, "", fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_errno(e, "mount");
	return 0;
}

/* One of the directories above a path, or the path. */
static int keep_part(int workspace, const char *part, bool whole, struct err *e)
{
	struct stat st;
	auto_close int fd = fd_openat2(workspace, part, O_PATH,
	        RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	if (fd < 0)
		return refuse(part, fd, e);
	if (fstat(fd, &st) < 0)
		return refuse(part, -errno, e);
	int r = whole ? check(part, &st, e) : 0;
	if (r < 0 || (!whole && mounted(fd)))
		return r;
	r = cover(fd, whole ? MOUNTS_RO : MOUNTS_NSD, e);
	return r < 0 ? err_wrap(e, "narrow.readOnly: %.200s", part) : 0;
}

static int keep(int workspace, const char *path, struct err *e)
{
	char part[JAIL_TARGET_MAX];
	int r = 0;
	for (const char *at = strchr(path, '/'); at && r == 0; at = strchr(at + 1, '/')) {
		(void)snprintf(part, sizeof(part), "%.*s", (int)(at - path), path);
		r = keep_part(workspace, part, false, e);
	}
	return r < 0 ? r : keep_part(workspace, path, true, e);
}

int keeps_apply(int mntns, const struct jail_keeps *k, struct err *e)
{
	struct mounts_visit v;
	int r = k->n ? mounts_enter(&v, mntns, e) : 0;
	if (r < 0 || k->n == 0)
		return r;
	int workspace = open("/workspace", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (workspace < 0)
		r = err_errno(e, "narrow.readOnly: /workspace");
	for (uint32_t i = 0; i < k->n && r == 0; i++)
		r = keep(workspace, k->paths[i], e);
	fd_close(workspace);
	mounts_leave(&v);
	return r;
}
