#include "jail/canary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { MOUNTINFO = 64 << 10, PROC_MAGIC = 0x9fa0 };

/* ---- mounts ---- */

static bool below(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = list; (p = strstr(p, word)); p += n)
		if ((p == list || p[-1] == ',') && (p[n] == ',' || p[n] == '\0'))
			return true;
	return false;
}

static void judge_mount(const char *path, const char *options)
{
	static const char *const writable[] = {
	        "/tmp", "/run", "/home/agent", "/workspace", "/dev/shm", "/dev/pts"};
	/* Nodes, and the null that covers a file of /proc: the device is what they are for. */
	bool node = below(path, "/dev") || (below(path, "/proc") && strcmp(path, "/proc") != 0);
	bool ro = has_word(options, "ro") || (node && !below(path, "/dev/shm"));
	for (size_t i = 0; !ro && i < sizeof(writable) / sizeof(writable[0]); i++)
		ro = strcmp(path, writable[i]) == 0;
	if (!ro)
		lacks(LAYER_ROOTFS, "%.40s is writable", path);
	if (!has_word(options, "nosuid"))
		lacks(LAYER_ROOTFS, "%.40s is not nosuid", path);
	if (!node && !has_word(options, "nodev"))
		lacks(LAYER_DEV, "%.40s is not nodev", path);
}

/* Only what is the jail's own, or its session's, may be no overlay: an inode that another jail has
 * too can be locked and watched by both. */
static void judge_inodes(const char *path, const char *type)
{
	static const char *const own[] = {
	        "/tmp", "/run", "/home/agent", "/workspace", "/mnt", "/dev/shm", "/dev/pts"};
	bool fine = strcmp(type, "overlay") == 0 || strcmp(path, "/proc") == 0;
	for (size_t i = 0; !fine && i < sizeof(own) / sizeof(own[0]); i++)
		fine = below(path, own[i]);
	if (!fine)
		lacks(LAYER_INODES, "%.40s is shared (%.16s)", path, type);
}

/* ID PARENT MAJOR:MINOR ROOT PATH OPTIONS [PROPAGATION...] - TYPE SOURCE OPTIONS */
static void judge_line(char *line)
{
	char *field[6], *save = NULL;
	for (int i = 0; i < 6; i++) {
		field[i] = strtok_r(i ? NULL : line, " ", &save);
		if (!field[i]) {
			lacks(LAYER_MOUNTNS, "mountinfo is not what it was");
			return;
		}
	}
	judge_mount(field[4], field[5]);
	for (char *more; (more = strtok_r(NULL, " ", &save)) && strcmp(more, "-") != 0;)
		if (strncmp(more, "shared:", 7) == 0 || strncmp(more, "master:", 7) == 0)
			lacks(LAYER_MOUNTNS, "%.40s is tied to another mount", field[4]);
	const char *type = strtok_r(NULL, " ", &save);
	judge_inodes(field[4], type ? type : "?");
}

static void judge_roots(void)
{
	struct stat here, above;
	if (stat("/", &here) < 0 || stat("/..", &above) < 0 || here.st_ino != above.st_ino ||
	        here.st_dev != above.st_dev)
		lacks(LAYER_MOUNTNS, "something is above the root");
	static const char *const places[] = {"/canary", "/usr/canary", "/etc/canary"};
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int r = mkdir(places[i], 0700);
		if (r == 0)
			(void)rmdir(places[i]);
		if (r == 0 || errno != EROFS)
			lacks(LAYER_ROOTFS, "mkdir %s: %s", places[i],
			        r == 0 ? "goes through" : strerror(errno));
	}
}

void look_at_mounts(void)
{
	static char text[MOUNTINFO];
	looked(LAYER_ROOTFS);
	looked(LAYER_INODES);
	long n = text_of("/proc/self/mountinfo", text, sizeof(text));
	if (n <= 0 || n == MOUNTINFO - 1)
		lacks(LAYER_MOUNTNS, "mountinfo cannot be read whole");
	char *save = NULL;
	for (char *l = strtok_r(n > 0 ? text : NULL, "\n", &save); l;
	        l = strtok_r(NULL, "\n", &save))
		judge_line(l);
	judge_roots();
}

/* ---- /proc ---- */

void look_at_proc(void)
{
	/* Readable to everyone where nothing covers them. */
	static const char *const masked[] = {"/proc/keys", "/proc/interrupts", "/proc/locks",
	        "/proc/cmdline", "/proc/diskstats", "/proc/partitions", "/proc/sys/fs/file-nr"};
	struct statfs fs;
	looked(LAYER_PROC);
	if (statfs("/proc", &fs) < 0 || fs.f_type != PROC_MAGIC)
		lacks(LAYER_PROC, "/proc is no proc file system");
	else if (!(fs.f_flags & ST_RDONLY))
		lacks(LAYER_PROC, "/proc is writable");
	if (access("/proc/1", F_OK) == 0)
		lacks(LAYER_PROC, "PID 1 shows: no hidepid=invisible");
	for (size_t i = 0; i < sizeof(masked) / sizeof(masked[0]); i++) {
		char text[16];
		if (text_of(masked[i], text, sizeof(text)) > 0)
			lacks(LAYER_PROC, "%s can be read", masked[i]);
	}
}

/* ---- /dev ---- */

static void judge_node(const char *name)
{
	static const struct {
		const char *name;
		unsigned major, minor;
	} known[] = {
	        {"null", 1, 3},
	        {"zero", 1, 5},
	        {"full", 1, 7},
	        {"random", 1, 8},
	        {"urandom", 1, 9},
	        {"tty", 5, 0},
	};
	char path[300];
	struct stat st;
	(void)snprintf(path, sizeof(path), "/dev/%s", name);
	if (lstat(path, &st) < 0 || (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode)))
		return;
	for (size_t i = 0; S_ISCHR(st.st_mode) && i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(name, known[i].name) == 0 && major(st.st_rdev) == known[i].major &&
		        minor(st.st_rdev) == known[i].minor)
			return;
	lacks(LAYER_DEV, "device /dev/%.20s is %u:%u", name, major(st.st_rdev), minor(st.st_rdev));
}

void look_at_dev(void)
{
	looked(LAYER_DEV);
	DIR *d = opendir("/dev");
	if (!d)
		lacks(LAYER_DEV, "/dev: %s", strerror(errno));
	for (const struct dirent *e; d && (e = readdir(d));)
		judge_node(e->d_name);
	if (d)
		closedir(d);
	/* block 1:0, a memory disk: loaded nowhere by this, and unlinked again */
	if (mknod("/tmp/canary-node", S_IFBLK | 0600, makedev(1, 0)) == 0) {
		(void)unlink("/tmp/canary-node");
		lacks(LAYER_DEV, "mknod goes through");
	}
}

/* ---- descriptors ---- */

void look_at_descriptors(void)
{
	for (int fd = 0; fd < 3; fd++) {
		struct stat st;
		if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))
			lacks(LAYER_MOUNTNS, "descriptor %d is no pipe", fd);
	}
	DIR *d = opendir("/proc/self/fd");
	if (!d)
		lacks(LAYER_MOUNTNS, "/proc/self/fd: %s", strerror(errno));
	for (const struct dirent *e; d && (e = readdir(d));) {
		long fd = strtol(e->d_name, NULL, 10); /* "." and "..": 0 */
		if (fd > 2 && fd != dirfd(d))
			lacks(LAYER_MOUNTNS, "descriptor %ld was left open", fd);
	}
	if (d)
		closedir(d);
}

/* ---- what it may write ---- */

void look_at_workspace(void)
{
	struct stat st = {0};
	looked(LAYER_IDMAP);
	int fd = open("/workspace/" CANARY_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		lacks(LAYER_IDMAP, "a file in the workspace: %s", strerror(errno));
	else if (st.st_uid != getuid() || st.st_gid != getgid())
		lacks(LAYER_IDMAP, "its own file belongs to %u:%u", st.st_uid, st.st_gid);
	if (fd >= 0)
		close(fd);
}

static void refuses(enum layer l, int got, int want, const char *what)
{
	if (got == 0)
		lacks(l, "%s goes through", what);
	else if (got != want)
		lacks(l, "%s: %s", what, strerror(got));
}

void look_at_disk(void)
{
	looked(LAYER_LIMIT_DISK);
	int fd = open("/home/agent/canary", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0) {
		lacks(LAYER_LIMIT_DISK, "a file at home: %s", strerror(errno));
		return;
	}
	refuses(LAYER_LIMIT_DISK, posix_fallocate(fd, 0, CANARY_DISK + (1 << 20)), ENOSPC,
	        "more than the disk limit");
	refuses(LAYER_RLIMITS, ftruncate(fd, (off_t)CANARY_FILE_MAX + 1) < 0 ? errno : 0, EFBIG,
	        "a file above its limit");
	(void)unlink("/home/agent/canary");
	close(fd);
}

/* Who has no CAP_MKNOD gets EPERM; Landlock, which lets nobody make a device node, is asked before
 * that and says EACCES.  Not by a whiteout, which takes no capability: Linux 6.1 lets that through.
 */
void look_at_landlock(void)
{
	static const char path[] = "/tmp/canary-device";
	looked(LAYER_LANDLOCK);
	int r = mknod(path, S_IFBLK | 0600, makedev(1, 0));
	if (r == 0)
		(void)unlink(path);
	refuses(LAYER_LANDLOCK, r == 0 ? 0 : errno, EACCES, "a node in /tmp");
}
