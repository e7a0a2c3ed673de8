#include "jail/surroundings.h"

#include "base/fd.h"
#include "base/mem.h"
#include "jail/privilege.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- whose container ---- */

static const struct {
	const char *kind, *remedy;
} managers[] = {
        {"docker", "docker run --privileged --cgroupns=private, with the state on a volume"},
        {"podman",
                "podman run --privileged --cgroupns=private as root, with the state on a volume"},
        {"kubernetes", "securityContext: { privileged: true }, with the state on a volume"},
        {"lxc", "lxc.cap.drop=, lxc.seccomp.profile=, lxc.apparmor.profile=unconfined, "
                "lxc.mount.auto=proc:rw sys:rw cgroup:rw (Incus: security.privileged)"},
        {"systemd-nspawn", "SYSTEMD_NSPAWN_API_VFS_WRITABLE=yes systemd-nspawn --capability=all "
                           "--private-users=no --system-call-filter='@mount @keyring @io-event "
                           "@process'"},
};

static const char elsewhere[] = "start it as root with all capabilities of its unit; a container "
                                "wants --privileged --cgroupns=private (Docker, podman)";

static const char *remedy_of(const char *kind)
{
	for (size_t i = 0; i < ARRAY_LEN(managers); i++)
		if (strcmp(managers[i].kind, kind) == 0)
			return managers[i].remedy;
	return elsewhere;
}

void surroundings_kind(const char *root, char ret[SURROUNDINGS_KIND])
{
	static const struct {
		const char *path, *kind;
	} marks[] = {{"run/.containerenv", "podman"}, {".dockerenv", "docker"},
	        {"var/run/secrets/kubernetes.io", "kubernetes"}};
	auto_close int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_free char *text = NULL;
	const char *told = getenv("container");
	size_t n = 0;
	ret[0] = '\0';
	if (!told && file_slurp_at(dir, "run/systemd/container", 256, &text, &n) == 0)
		told = text;
	if (told)
		(void)snprintf(ret, SURROUNDINGS_KIND, "%.*s",
		        (int)strspn(told, "abcdefghijklmnopqrstuvwxyz-"), told);
	for (size_t i = 0; i < ARRAY_LEN(marks) && !ret[0]; i++)
		if (faccessat(dir, marks[i].path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			(void)snprintf(ret, SURROUNDINGS_KIND, "%s", marks[i].kind);
}

/* ---- what is tried, in a child ---- */

static int new_mounts(void)
{
	if (unshare(CLONE_NEWNS) < 0)
		return -1;
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}
static int new_net(void)
{
	return unshare(CLONE_NEWNET);
}
static int new_pids(void)
{
	return unshare(CLONE_NEWPID);
}
static int new_others(void)
{
	return unshare(CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP);
}
static int mount_calls(void)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_NODEV};
	int fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	int fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	return (int)syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof(attr));
}
/* Those below are called so that they fail: but not for want of a permission. */
static int pivot(void)
{
	return (int)syscall(SYS_pivot_root, "/proc/self/none", "/");
}
static int enter(void)
{
	return setns(-1, 0);
}
static int clone_3(void)
{
	return (int)syscall(SYS_clone3, NULL, (size_t)0);
}
static int ring(void)
{
	return (int)syscall(SYS_io_uring_setup, 0, NULL);
}
static int filter(void)
{
	const uint32_t action = SECCOMP_RET_ERRNO;
	return (int)syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);
}
static int user_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}

static const struct {
	const char *what;
	int (*attempt)(void);
} attempts[] = {
        {"namespaces of mounts (unshare, mount)", new_mounts},
        {"namespaces of networks", new_net},
        {"namespaces of processes", new_pids},
        {"namespaces of IPC, host name and cgroups", new_others},
        {"mounts by descriptor (fsopen, fsmount, mount_setattr)", mount_calls},
        {"pivot_root", pivot},
        {"setns", enter},
        {"clone3", clone_3},
        {"io_uring (kernel.io_uring_disabled is 2, or a filter forbids it)", ring},
        {"system call filters (seccomp)", filter},
        {"user namespaces (user.max_user_namespaces is 0, or a filter forbids them)",
                user_namespace},
};

static bool refused(int error)
{
	return error == EPERM || error == ENOSYS || error == EACCES || error == ENOSPC ||
	       error == EUSERS;
}

/* The bits of those that were refused. */
static int tried(uint32_t *ret, struct err *e)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(e, "pipe");
	auto_close int from = ends[0], to = ends[1];
	pid_t pid = fork();
	if (pid < 0)
		return err_errno(e, "fork");
	if (pid == 0) {
		uint32_t bits = 0;
		for (size_t i = 0; i < ARRAY_LEN(attempts); i++)
			if (attempts[i].attempt() < 0 && refused(errno))
				bits |= 1u << i;
		_exit(write(to, &bits, sizeof(bits)) == (ssize_t)sizeof(bits) ? 0 : 1);
	}
	fd_close(take_fd(to));
	ssize_t n = read(from, ret, sizeof(*ret));
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (n == (ssize_t)sizeof(*ret))
		return 0;
	/* A filter may kill instead of refusing. */
	return err_set(e, -ENOTSUP, "what jails need was tried, and the trial was killed");
}

/* ---- what is looked at ---- */

static void look_at_capabilities(struct buf *missing)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {{0}};
	if (syscall(SYS_capget, &h, d) < 0)
		return;
	uint64_t have = d[0].effective | (uint64_t)d[1].effective << 32;
	privilege_missing(have, missing);
}

static void look_at_proc(struct buf *missing)
{
	char self[16], pid[16];
	struct statvfs fs;
	ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);
	(void)snprintf(pid, sizeof(pid), "%d", getpid());
	self[n < 0 ? 0 : n] = '\0';
	if (n < 0)
		(void)buf_puts(missing, "/proc: it is not mounted\n");
	else if (strcmp(self, pid) != 0)
		(void)buf_puts(missing, "/proc: it is of another PID namespace\n");
	else if (statvfs("/proc/sys/user/max_user_namespaces", &fs) < 0)
		(void)buf_puts(missing, "/proc/sys: it is masked\n");
	else if (fs.f_flag & ST_RDONLY)
		(void)buf_puts(missing, "/proc/sys: it is read-only\n");
}

int surroundings_check(struct buf *missing, struct err *e)
{
	char kind[SURROUNDINGS_KIND];
	uint32_t bits = 0;
	look_at_capabilities(missing);
	look_at_proc(missing);
	int r = tried(&bits, e);
	if (r < 0 && r != -ENOTSUP)
		return r;
	if (r < 0)
		(void)buf_printf(missing, "%s\n", e->text);
	for (size_t i = 0; i < ARRAY_LEN(attempts); i++)
		if (bits & 1u << i)
			(void)buf_printf(missing, "%s\n", attempts[i].what);
	if (missing->len == 0)
		return 0;
	surroundings_kind("/", kind);
	return err_set(e, -ENOTSUP, "no jail can be made here%s%s, see above; remedy: %s",
	        kind[0] ? ", in a container of " : "", kind, remedy_of(kind));
}
