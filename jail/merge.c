/*
 * Theory of operation: before Linux 6.15 the layers of an overlay must be attached mounts.  A tmpfs
 * with a place for each is attached at /mnt of a template, the layers in it, the overlay made, and
 * the tmpfs let go: the overlay holds what it needs.
 */
#include "jail/merge.h"
#include "base/fd.h"
#include "base/mem.h"
#include "jail/home.h"
#include "jail/mounts.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AT    "/mnt"
#define LOW   "low"
#define UPPER "up/upper"
#define WORK  "up/work"

/* ---- directories ---- */

/* The parent is root's and 0700. */
static int prepare_one(int dir, const char *name, uint32_t owner, struct err *e)
{
	struct stat st;
	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return err_errno(e, "%s", name);
	auto_close int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, "%s", name);
	/* Whatever a jail left of its workspace: the next run's agent gets into it. */
	if ((st.st_uid != owner || st.st_gid != owner) && fchown(fd, owner, owner) < 0)
		return err_errno(e, "chown %s", name);
	if ((st.st_mode & S_IRWXU) != S_IRWXU && fchmod(fd, (st.st_mode & 07777) | S_IRWXU) < 0)
		return err_errno(e, "chmod %s", name);
	return 0;
}

int merge_prepare(int dir, uint32_t owner, struct err *e)
{
	int r = prepare_one(dir, "upper", owner, e);
	return r < 0 ? r : prepare_one(dir, "work", owner, e);
}

/* ---- who the overlay acts as ---- */

struct self {
	struct __user_cap_data_struct caps[2];
};

static int set_caps(const struct __user_cap_data_struct caps[2])
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	return (int)syscall(SYS_capset, &h, caps);
}

static int set_fsid(uint32_t id)
{
	(void)setfsgid(id);
	(void)setfsuid(id);
	/* They tell of no error; with an id that cannot be they only say what is. */
	return setfsgid((gid_t)-1) == (int)id && setfsuid((uid_t)-1) == (int)id ? 0 : -EPERM;
}

static void come_back(const struct self *was)
{
	struct home ids = {0}, caps = {0};
	while (home_retry(&ids, set_fsid(0), "file system ids"))
		;
	while (home_retry(&caps, set_caps(was->caps), "capabilities"))
		;
}

static int become(uint32_t id, struct self *was, struct err *e)
{
	static const int needs[] = {CAP_SYS_ADMIN, CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER,
	        CAP_FSETID, CAP_MKNOD, CAP_SETFCAP};
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	if (syscall(SYS_capget, &h, was->caps) < 0)
		return err_errno(e, "own capabilities");
	struct __user_cap_data_struct caps[2] = {was->caps[0], was->caps[1]};
	caps[0].effective = caps[1].effective = 0;
	for (size_t i = 0; i < ARRAY_LEN(needs); i++)
		caps[needs[i] / 32].effective |= 1u << (needs[i] % 32);
	for (size_t i = 0; i < ARRAY_LEN(caps); i++)
		caps[i].effective &= caps[i].permitted;
	int r = set_fsid(id);
	if (r == 0 && set_caps(caps) < 0)
		r = -errno;
	if (r == 0)
		return 0;
	come_back(was);
	return err_set(e, r, "becoming id %u for a moment: %s", id, strerror(-r));
}

/* ---- the overlay ---- */

static int configure(int fs, bool writable, struct err *e)
{
	static const char *const one_mode[][2] = {
	        {"redirect_dir", "off"}, {"metacopy", "off"}, {"index", "off"}, {"xino", "off"}};
	const char *const layers[][2] = {
	        {"lowerdir", writable ? AT "/" LOW : "up/workspace/upper:" LOW},
	        {"upperdir", AT "/" UPPER},
	        {"workdir", AT "/" WORK},
	};
	for (size_t i = 0; i < (writable ? ARRAY_LEN(layers) : 1); i++)
		if (fsconfig(fs, FSCONFIG_SET_STRING, layers[i][0], layers[i][1], 0) < 0)
			return err_errno(e, "overlay: %s", layers[i][0]);
	for (size_t i = 0; i < ARRAY_LEN(one_mode); i++)
		if (fsconfig(fs, FSCONFIG_SET_STRING, one_mode[i][0], one_mode[i][1], 0) < 0)
			return err_errno(e, "overlay: %s", one_mode[i][0]);
	return 0;
}

/* One without a usable work directory is made all the same, read-only. */
static int check_writable(int mount, struct err *e)
{
	struct statvfs fs;
	if (fstatvfs(mount, &fs) < 0)
		return err_errno(e, "overlay");
	return fs.f_flag & ST_RDONLY ? err_set(e, -EROFS,
	                                       "overlay: the kernel made it read-only (its log "
	                                       "says why; remedy: the state on ext4, xfs or btrfs)")
	                             : 0;
}

static int make(const struct merge *m, struct err *e)
{
	auto_close int fs = fsopen("overlay", FSOPEN_CLOEXEC);
	if (fs < 0)
		return err_errno(e, "overlay: this kernel has no such file system");
	int r = configure(fs, m != NULL, e);
	struct self was;
	if (r == 0 && m)
		r = become(m->id, &was, e);
	if (r < 0)
		return r;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		r = err_errno(e, "overlay: cannot be made");
	if (m)
		come_back(&was);
	if (r < 0)
		return r;
	auto_close int mount = fsmount(fs, FSMOUNT_CLOEXEC, m ? MOUNTS_NSD : MOUNTS_RO);
	if (mount < 0)
		return err_errno(e, "overlay: cannot be mounted");
	r = m ? check_writable(mount, e) : 0;
	return r < 0 ? r : take_fd(mount);
}

static int attach(int mount, int dir, const char *name, struct err *e)
{
	if (mkdirat(dir, name, 0700) < 0 ||
	        move_mount(mount, "", dir, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_errno(e, "place of a layer");
	return 0;
}

static int new_places(struct err *e)
{
	static const char *const options[] = {
	        "size", "64k", "nr_inodes", "16", "mode", "0700", NULL};
	return mounts_new("tmpfs", MOUNTS_NSD, options, e);
}

int merge_mount(const struct merge *m, struct err *e)
{
	auto_close int places = new_places(e);
	auto_close int lower = places < 0 ? -1 : mounts_clone(m->lower, "", MOUNTS_RO, m->idmap, e);
	if (lower < 0)
		return e->code;
	struct mounts_visit v;
	int r = mounts_enter(&v, m->mntns, e);
	if (r < 0)
		return r;
	if (move_mount(places, "", AT_FDCWD, AT, MOVE_MOUNT_F_EMPTY_PATH) < 0) {
		r = err_errno(e, "mount on " AT);
	} else {
		r = attach(lower, places, LOW, e);
		if (r == 0)
			r = attach(m->upper, places, "up", e);
		if (r == 0)
			r = make(m, e);
		struct home h = {0}; /* else every jail of that policy would see it */
		while (home_retry(&h, umount2(AT, MNT_DETACH | UMOUNT_NOFOLLOW), "empty template"))
			;
	}
	mounts_leave(&v);
	return r;
}

int merge_read(int top, int lower, const char *at, struct err *e)
{
	auto_close int upper = top;
	auto_close int places = new_places(e);
	if (places < 0)
		return places;
	if (move_mount(places, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_errno(e, "mount on %s", at);
	int r = attach(upper, places, "up", e);
	if (r == 0)
		r = attach(lower, places, LOW, e);
	/* Relative: the state's path may hold what separates layers. */
	if (r == 0 && fchdir(places) < 0)
		r = err_errno(e, "places of the layers");
	return r < 0 ? r : make(NULL, e);
}
