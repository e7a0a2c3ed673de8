/* Mounts, roots, device nodes, and the host's files. */
#include "attempt.h"

#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define HERE    ((long)AT_FDCWD)
#define TEXT(s) ((long)(uintptr_t)(s))

/* ---- F1, F2: mounting ---- */

static enum answer remount(const struct attempt *a)
{
	return answer_of(mount(NULL, a->path, NULL, MS_REMOUNT | MS_BIND | MS_NOSUID, NULL), a);
}

static enum answer handle(const struct attempt *a)
{
	struct {
		struct file_handle h;
		char bytes[128];
	} f = {.h.handle_bytes = 128};
	int id = 0, at = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)syscall(303, AT_FDCWD, "/usr", &f, &id, 0);
	return answer_of(syscall(304, at, &f, O_RDONLY | O_CLOEXEC), a);
}

/* One root inside another, and out of it by what was open before. */
static enum answer chroot_dance(const struct attempt *a)
{
	int out = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)mkdir("/tmp/dance", 0755);
	int r = chroot("/tmp/dance");
	if (r == 0)
		r = fchdir(out);
	return answer_of(r, a);
}

/* ---- F5, F6: what files may carry ---- */

static enum answer setuid_file(const struct attempt *a)
{
	pid_t pid = fork();
	if (pid == 0) {
		(void)execl(a->path, a->path, "--euid", NULL);
		_exit(200);
	}
	int status = 0;
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) > 1)
		return BROKEN;
	return WEXITSTATUS(status) ? THROUGH : STOPPED;
}

static enum answer node(const struct attempt *a)
{
	(void)unlink(a->path);
	int r = mknod(a->path, (mode_t)a->arg[0] | 0600,
	        makedev((unsigned)a->arg[1], (unsigned)a->arg[2]));
	enum answer answer = answer_of(r, a);
	(void)unlink(a->path);
	return answer;
}

static enum answer open_node(const struct attempt *a)
{
	return answer_of(open(a->path, O_RDWR | O_CLOEXEC), a);
}

static enum answer create(const struct attempt *a)
{
	int fd = open(a->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	enum answer answer = answer_of(fd, a);
	(void)unlink(a->path);
	return answer;
}

static enum answer hard_link(const struct attempt *a)
{
	return answer_of(link("/usr/bin/env", a->path), a);
}

/* ---- F10, F13: by way of /proc ---- */

static enum answer way_up(const struct attempt *a)
{
	struct stat root, up;
	if (stat("/", &root) < 0 || stat(a->path, &up) < 0)
		return STOPPED;
	return root.st_ino == up.st_ino && root.st_dev == up.st_dev ? STOPPED : THROUGH;
}

static enum answer forgotten_descriptors(const struct attempt *a)
{
	(void)a;
	for (int fd = 3; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return THROUGH;
	return STOPPED;
}

static enum answer own_program(const struct attempt *a)
{
	errno = 0;
	return answer_of(open("/proc/self/exe", O_WRONLY | O_CLOEXEC), a);
}

/* ---- F20, F21: flags that survive ---- */

static enum answer immutable(const struct attempt *a)
{
	int fd = open("/tmp/immutable", O_CREAT | O_RDWR | O_CLOEXEC, 0600), flags = 0;
	(void)ioctl(fd, FS_IOC_GETFLAGS, &flags);
	flags |= FS_IMMUTABLE_FL;
	errno = 0;
	enum answer answer = answer_of(ioctl(fd, FS_IOC_SETFLAGS, &flags), a);
	flags = 0;
	(void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
	(void)unlink("/tmp/immutable");
	return answer;
}

static enum answer project(const struct attempt *a)
{
	int fd = open("/workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fsxattr x = {0};
	(void)ioctl(fd, FS_IOC_FSGETXATTR, &x);
	x.fsx_projid = x.fsx_projid + 1;
	int r = ioctl(fd, FS_IOC_FSSETXATTR, &x);
	if (r < 0 && (errno == ENOTTY || errno == EOPNOTSUPP))
		return STOPPED; /* a file system without such ids */
	return answer_of(r, a);
}

static enum answer reflink(const struct attempt *a)
{
	int from = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
	int to = open("/tmp/reflink", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	enum answer answer = answer_of(ioctl(to, FICLONE, from), a);
	(void)unlink("/tmp/reflink");
	return answer;
}

/* ---- what must not be there ---- */

static enum answer devices(const struct attempt *a)
{
	static const char *const names[] = {"console", "kmsg", "mem", "port", "kvm", "fuse",
	        "loop0", "loop-control", "sda", "vda", "nvme0", "tty0", "net/tun", "vhost-net",
	        "mapper/control", "hwrng", "uinput", "input", "dri", "snd", "cpu_dma_latency"};
	(void)a;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[64];
		(void)snprintf(path, sizeof(path), "/dev/%s", names[i]);
		if (access(path, F_OK) == 0)
			return THROUGH;
	}
	return STOPPED;
}

#define MOUNTING "filter,privilege"
#define CALL(name, what_, errno_, since_, nr_, ...)                                                \
	{                                                                                          \
		.id = name, .what = what_, .fn = attempt_call, .without = MOUNTING,                \
		.want = errno_, .since = since_, .nr = nr_,                                        \
		.arg = { __VA_ARGS__ }                                                             \
	}
#define WRITE(file)                                                                                \
	{                                                                                          \
		.id = "F3", .what = "open " file " to write", .fn = attempt_open_to_write,         \
		.without = "readonly,privilege", .want = EROFS, .also = EACCES, .path = file       \
	}
#define ABSENT(name, file, lax)                                                                    \
	{                                                                                          \
		.id = name, .what = "see " file, .fn = attempt_see, .without = lax,                \
		.want = ENOENT, .path = file                                                       \
	}
#define MASKED(file)                                                                               \
	{                                                                                          \
		.id = "F3", .what = file " says nothing", .fn = attempt_read,                      \
		.without = "masks,privilege", .path = file                                         \
	}

/* Tables are read by column. */
/* clang-format off */
static const struct attempt rows[] = {
	CALL("F1", "mount a tmpfs", EPERM, 0, SYS_mount, TEXT("t"), TEXT("/mnt"), TEXT("tmpfs"), 0, 0),
	CALL("F1", "bind a directory", EPERM, 0, SYS_mount, TEXT("/usr"), TEXT("/mnt"), 0, MS_BIND, 0),
	CALL("F1", "bind the whole tree", EPERM, 0, SYS_mount, TEXT("/"), TEXT("/mnt"), 0,
		MS_BIND | MS_REC, 0),
	CALL("F1", "share mounts", EPERM, 0, SYS_mount, 0, TEXT("/"), 0, MS_SHARED | MS_REC, 0),
	CALL("F1", "unmount", EPERM, 0, SYS_umount2, TEXT("/dev/shm"), MNT_DETACH),
	CALL("F1", "pivot_root", EPERM, 0, SYS_pivot_root, TEXT("/no-such"), TEXT("/no-such")),
	CALL("F1", "swapon", EPERM, 0, SYS_swapon, TEXT("/no-such"), 0),
	CALL("F1", "quotactl", EPERM, 0, SYS_quotactl, -1, 0, 0, 0),
	{ .id = "F1", .what = "remount /usr writable", .fn = remount, .without = MOUNTING,
		.want = EPERM, .path = "/usr" },
	CALL("F2", "fsopen", ENOSYS, 0, SYS_fsopen, TEXT("tmpfs"), 0),
	CALL("F2", "fspick", ENOSYS, 0, SYS_fspick, HERE, TEXT("/tmp"), 0),
	CALL("F2", "fsconfig", ENOSYS, 0, SYS_fsconfig, -1, 0, 0, 0, 0),
	CALL("F2", "fsmount", ENOSYS, 0, SYS_fsmount, -1, 0, 0),
	CALL("F2", "open_tree", ENOSYS, 0, SYS_open_tree, HERE, TEXT("/tmp"), 1),
	CALL("F2", "move_mount", ENOSYS, 0, SYS_move_mount, -1, TEXT(""), -1, TEXT(""), 4),
	CALL("F2", "mount_setattr", ENOSYS, 0, 442, HERE, TEXT("/"), 0, 0, 0),
	CALL("F2", "statmount", ENOSYS, KERNEL(6, 8), 457, 0, 0, 0, 0),
	CALL("F2", "listmount", ENOSYS, KERNEL(6, 8), 458, 0, 0, 0, 0),
	CALL("F2", "open_tree_attr", ENOSYS, KERNEL(6, 15), 467, HERE, TEXT("/tmp"), 1, 0, 0),
	WRITE("/proc/sys/kernel/core_pattern"),
	WRITE("/proc/sys/kernel/modprobe"),
	WRITE("/proc/sys/kernel/hostname"),
	WRITE("/proc/sys/vm/drop_caches"),
	WRITE("/proc/sys/net/ipv4/ping_group_range"),
	WRITE("/proc/sysrq-trigger"),
	WRITE("/proc/self/uid_map"),
	WRITE("/proc/self/oom_score_adj"),
	WRITE("/usr/lib/os-release"), /* a program that is open to write cannot be started */
	WRITE("/etc/passwd"),
	WRITE("/etc/ld.so.cache"),
	{ .id = "F3", .what = "create in /", .fn = create, .without = "readonly,privilege",
		.want = EROFS, .path = "/planted" },
	{ .id = "F3", .what = "create in /dev", .fn = create, .without = "readonly,privilege",
		.want = EROFS, .path = "/dev/planted" },
	{ .id = "F3", .what = "create in /usr", .fn = create, .without = "readonly,privilege",
		.want = EROFS, .path = "/usr/bin/planted" },
	{ .id = "F3", .what = "create in /etc", .fn = create, .without = "readonly,privilege",
		.want = EROFS, .path = "/etc/planted" },
	MASKED("/proc/keys"),
	MASKED("/proc/key-users"),
	MASKED("/proc/interrupts"),
	MASKED("/proc/timer_list"),
	MASKED("/proc/locks"),
	MASKED("/proc/cmdline"),
	MASKED("/proc/diskstats"),
	MASKED("/proc/partitions"),
	MASKED("/proc/schedstat"),
	MASKED("/proc/sys/fs/file-nr"),
	MASKED("/proc/sys/fs/inode-nr"),
	MASKED("/proc/sys/fs/inode-state"),
	MASKED("/proc/sys/fs/dentry-state"),
	MASKED("/proc/sys/fs/quota/syncs"),
	MASKED("/proc/sys/kernel/pty/nr"),
	ABSENT("F3", "/sys/kernel", "root"),
	ABSENT("F3", "/sys/fs/cgroup", "root"),
	ABSENT("F4", "/etc/shadow", "root"),
	ABSENT("F4", "/etc/gshadow", "root"),
	ABSENT("F4", "/proc/1/exe", "pid1"),
	{ .id = "F5", .what = "run a setuid program of the host's root", .fn = setuid_file,
		.without = "userns,nnp,nodev,filter", .path = "/tools/setuid" },
	{ .id = "F6", .what = "make a device node", .fn = node, .without = "privilege",
		.want = EPERM, .also = EACCES, .path = "/tmp/mem", .arg = { S_IFCHR, 1, 1 } },
	{ .id = "F6", .what = "make a disk", .fn = node, .without = "privilege",
		.want = EPERM, .also = EACCES, .path = "/tmp/disk", .arg = { S_IFBLK, 8, 0 } },
	{ .id = "F6", .what = "open a node that is there", .fn = open_node, .without = "nodev",
		.want = EACCES, .path = "/tools/node" },
	{ .id = "F6", .what = "devices of the host", .fn = devices, .without = "root" },
	{ .id = "F7", .what = "hard link out of /usr", .fn = hard_link, .want = EXDEV,
		.uncontrolled = "no link leads from one mount to another, whoever asks",
		.path = "/tmp/env" },
	{ .id = "F7", .what = "hard link within /usr", .fn = hard_link,
		.without = "readonly,privilege", .want = EROFS, .path = "/usr/bin/env-planted" },
	{ .id = "F8", .what = "a root inside the root", .fn = chroot_dance, .without = MOUNTING,
		.want = EPERM },
	{ .id = "F9", .what = "open by handle", .fn = handle, .without = MOUNTING, .want = EPERM },
	CALL("F9", "ask for a handle", EPERM, 0, 303, HERE, TEXT("/"), 0, 0, 0),
	{ .id = "F10", .what = "/..", .fn = way_up, .path = "/..",
		.uncontrolled = "no kernel leads above a root" },
	{ .id = "F10", .what = "/proc/self/root/..", .fn = way_up, .path = "/proc/self/root/..",
		.uncontrolled = "no kernel leads above a root" },
	{ .id = "F10", .what = "up from the working directory", .fn = way_up,
		.path = "/proc/self/cwd/../../../../../..",
		.uncontrolled = "no kernel leads above a root" },
	{ .id = "F10", .what = "/proc/1/root", .fn = attempt_see, .without = "pid1",
		.want = ENOENT, .path = "/proc/1/root" },
	{ .id = "F10", .what = "a descriptor that was forgotten", .fn = forgotten_descriptors,
		.without = "fds" },
	{ .id = "F13", .what = "write to the own program", .fn = own_program, .want = EACCES,
		.also = EROFS, .uncontrolled = "a program that runs is busy, also elsewhere" },
	{ .id = "F13", .what = "PID 1's program", .fn = attempt_open_to_write, .without = "pid1",
		.want = ENOENT, .path = "/proc/1/exe" },
	{ .id = "F20", .what = "make a file immutable", .fn = immutable, .without = "privilege",
		.want = EPERM, .also = ENOTTY, .since = KERNEL(6, 6) },
	{ .id = "F20", .what = "leave the workspace's project id", .fn = project, .want = EPERM,
		.also = EINVAL, .uncontrolled = "takes a file system with project ids" },
	{ .id = "F21", .what = "share extents of /usr", .fn = reflink, .want = EXDEV,
		.also = EOPNOTSUPP, .uncontrolled = "no extent is shared between two mounts" },
	CALL("F24", "fanotify", EPERM, 0, 300, 0, 0),
};
/* clang-format on */

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--euid") == 0)
		return geteuid() != getuid();
	return attempts_main(argc, argv, rows, sizeof(rows) / sizeof(rows[0]));
}
