/* Mounts, roots, device nodes, and the host's files. */
#include "escape.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

static void mounts(void)
{
	/* Names that nothing has: where mounting is allowed, the answer is another errno and no
	 * mount. */
	FAILS(mount("t", "/tmp", "no-such-type", 0, ""), EPERM, "mount");
	FAILS(mount(NULL, "/no-such-place", NULL, MS_REMOUNT | MS_BIND, NULL), EPERM, "remount");
	FAILS(mount("/no-such-place", "/mnt", NULL, MS_BIND, NULL), EPERM, "bind mount");
	FAILS(umount2("/proc/no-such-place", 0), EPERM, "umount");
	FAILS(syscall(SYS_pivot_root, "/no-such-place", "/no-such-place"), EPERM, "pivot_root");
	pid_t pid = fork(); /* outside a jail it would go through, and change us */
	if (pid == 0)
		_exit(chroot("/tmp") < 0 ? errno : 0);
	int status = 0;
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == EPERM, "chroot");
	FAILS(syscall(SYS_fsopen, "tmpfs", 0), ENOSYS, "fsopen");
	FAILS(syscall(SYS_open_tree, AT_FDCWD, "/tmp", 1), ENOSYS, "open_tree(CLONE)");
	FAILS(syscall(SYS_move_mount, -1, "", -1, "", 4), ENOSYS, "move_mount");
	FAILS(syscall(442, AT_FDCWD, "/", 0, NULL, 0), ENOSYS, "mount_setattr");
	FAILS(syscall(457, NULL, NULL, 0, 0), ENOSYS, "statmount");
	FAILS(syscall(303, AT_FDCWD, "/", NULL, NULL, 0), EPERM, "name_to_handle_at");
	FAILS(syscall(304, AT_FDCWD, NULL, 0), EPERM, "open_by_handle_at");
	FAILS(syscall(300, 0, 0), EPERM, "fanotify_init");
	FAILS(syscall(SYS_quotactl, 0, NULL, 0, NULL), EPERM, "quotactl");
	FAILS(syscall(SYS_swapon, "/no-such-file", 0), EPERM, "swapon");
}

/* Opened only: outside a jail this may succeed, and changes nothing. */
static void refused(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	/* some kernels lack some of them */
	ok(fd < 0 && (errno == EROFS || errno == EACCES || errno == ENOENT), "open %s to write",
	        path);
	if (fd >= 0)
		close(fd);
}

static void writes(void)
{
	static const char *const read_only[] = {
	        "/proc/sys/kernel/core_pattern",
	        "/proc/sys/kernel/modprobe",
	        "/proc/sys/vm/drop_caches",
	        "/proc/sysrq-trigger",
	        "/usr/bin/env",
	        "/etc/passwd",
	        "/etc/ld.so.cache",
	};
	for (size_t i = 0; i < sizeof(read_only) / sizeof(read_only[0]); i++)
		refused(read_only[i]);
	FAILS(open("/planted", O_CREAT | O_WRONLY | O_CLOEXEC, 0600), EROFS, "create in /");
	FAILS(open("/dev/planted", O_CREAT | O_WRONLY | O_CLOEXEC, 0600), EROFS, "create in /dev");
	FAILS(mkdir("/usr/planted", 0700), EROFS, "mkdir in /usr");
	FAILS2(mknod("/tmp/mem", S_IFCHR | 0600, makedev(1, 1)), EPERM, EACCES,
	        "mknod of a device");
	FAILS2(mknod("/tmp/disk", S_IFBLK | 0600, makedev(8, 0)), EPERM, EACCES, "mknod of a disk");
	unlink("/planted");
	unlink("/dev/planted");
	rmdir("/usr/planted");
	unlink("/tmp/mem");
	unlink("/tmp/disk");
	FAILS(link("/usr/bin/env", "/tmp/env"), EXDEV, "hard link out of /usr");
	unlink("/tmp/env");
}

static void host(void)
{
	static const char *const absent[] = {
	        "/etc/shadow",
	        "/etc/gshadow",
	        "/root/.ssh",
	        "/root/.bash_history",
	        "/boot",
	        "/sys/kernel",
	        "/sys/fs/cgroup",
	        "/dev/kvm",
	        "/dev/fuse",
	        "/dev/mem",
	        "/dev/sda",
	        "/dev/vda",
	        "/dev/loop0",
	        "/run/docker.sock",
	        "/run/agentbox",
	        "/var/lib/agentbox",
	        "/.oldroot",
	        "/proc/1",
	        "/proc/1/exe",
	        "/proc/1/root",
	        "/proc/1/environ",
	};
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		FAILS(access(absent[i], F_OK), ENOENT, "see %s", absent[i]);
	struct stat root, up, own;
	ok(stat("/", &root) == 0 && stat("/..", &up) == 0 && root.st_ino == up.st_ino, "/.. is /");
	ok(stat("/proc/self/root/..", &own) == 0 && own.st_ino == root.st_ino &&
	                own.st_dev == root.st_dev,
	        "/proc/self/root/.. is / of the jail");
	ok(stat("/proc/self/cwd/../../../../..", &own) == 0 && own.st_ino == root.st_ino,
	        "so is the way up from the working directory");
}

static void masked(void)
{
	static const char *const files[] = {"/proc/keys", "/proc/key-users", "/proc/kallsyms",
	        "/proc/interrupts", "/proc/config.gz", "/proc/kcore", "/proc/timer_list",
	        "/proc/kmsg"};
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char byte;
		int fd = open(files[i], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		ok(fd < 0 || read(fd, &byte, 1) <= 0, "%s says nothing", files[i]);
		if (fd >= 0)
			close(fd);
	}
}

int main(void)
{
	mounts();
	writes();
	host();
	masked();
	return done();
}
