#include "jail/userns.h"
#include "base/fd.h"
#include "jail/sysc.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/capability.h>

enum { CHILD_STACK = 8192 }; /* the child needs a few hundred bytes */

struct child {
	int hold[2]; /* the child lives until we close our end */
	bool sealed;
};

/* /proc/sys/user is that of the reader's user namespace; writing it takes CAP_SYS_RESOURCE there,
 * which the child has as its first process. */
static const char *const limits[] = {
        "/proc/sys/user/max_user_namespaces",
        "/proc/sys/user/max_pid_namespaces",
        "/proc/sys/user/max_net_namespaces",
        "/proc/sys/user/max_mnt_namespaces",
        "/proc/sys/user/max_ipc_namespaces",
        "/proc/sys/user/max_uts_namespaces",
        "/proc/sys/user/max_cgroup_namespaces",
        "/proc/sys/user/max_time_namespaces",
};

SYSC_CHILD static int child_main(void *arg)
{
	struct child *c = arg;
	sysc(SYS_close, c->hold[1]);
	for (size_t i = 0; c->sealed && i < sizeof(limits) / sizeof(limits[0]); i++) {
		long fd = sysc(SYS_open, limits[i], O_WRONLY | O_CLOEXEC);
		if (fd < 0 || sysc(SYS_write, fd, "0", 1) != 1)
			return 2;
		sysc(SYS_close, fd);
	}
	char byte;
	sysc(SYS_read, c->hold[0], &byte, 1);
	return 0;
}

static int write_map(pid_t pid, const char *file, const struct userns_map *m, struct err *e)
{
	char path[64], text[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	int n = snprintf(text, sizeof(text), "%u %u %u", m->inside, m->outside, m->count);
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(e, "layer userns: %s", file);
	if (write(fd, text, (size_t)n) != n)
		return err_errno(e, "layer userns: %s '%s'", file, text);
	return 0;
}

/* Our effective uid, with our capabilities as they are: those do not depend on it. */
static int look_like(uint32_t uid)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2];
	if (syscall(SYS_capget, &h, d) < 0 || syscall(SYS_setresuid, -1, uid, -1) < 0 ||
	        syscall(SYS_capset, &h, d) < 0)
		return -errno;
	return 0;
}

/* What the kernel counts for a user (inotify instances and watches, queued signals, locked memory)
 * it charges to the maker of the user namespace as well.  Were that root, one jail could take from
 * all others and from the host's own daemons; so it is an id of the block in question. */
static long clone_as(uint32_t owner, struct clone_args *a, struct child *c)
{
	uint32_t self = geteuid();
	int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	int r = look_like(owner);
	long pid = r < 0 ? r : sysc_clone(a, child_main, c);
	/* A change of ids makes it what fs.suid_dumpable says, which is 2 on some hosts: dumps of
	 * our memory, secrets included. */
	if (look_like(self) < 0 || prctl(PR_SET_DUMPABLE, dumpable == 1, 0, 0, 0) < 0)
		abort(); /* nothing after this would be done as who we are */
	return pid;
}

/* The namespace's fd while the child lives in it. */
static int fill(
        pid_t pid, const struct userns_map *uids, const struct userns_map *gids, struct err *e)
{
	int r = write_map(pid, "uid_map", uids, e);
	if (r == 0)
		r = write_map(pid, "gid_map", gids, e);
	if (r < 0)
		return r;
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_errno(e, "layer userns: %s", path) : fd;
}

int userns_make(
        const struct userns_map *uids, const struct userns_map *gids, bool sealed, struct err *e)
{
	assert(uids->outside != 0 && gids->outside != 0);
	struct child c = {.hold = {-1, -1}, .sealed = sealed};
	if (pipe2(c.hold, O_CLOEXEC) < 0)
		return err_errno(e, "pipe");
	char stack[CHILD_STACK] __attribute__((aligned(16)));
	/* No exit signal: the child is collected here and nowhere else. */
	struct clone_args a = {.flags = CLONE_NEWUSER | CLONE_VM,
	        .stack = (uintptr_t)stack,
	        .stack_size = sizeof(stack)};
	long pid = clone_as(uids->outside, &a, &c);
	fd_close(c.hold[0]);
	if (pid < 0) {
		fd_close(c.hold[1]);
		return err_set(e, (int)pid,
		        "layer userns: the kernel refuses a user namespace (%s); remedy: "
		        "user.max_user_namespaces > 0, CONFIG_USER_NS",
		        strerror((int)-pid));
	}
	auto_close int fd = fill((pid_t)pid, uids, gids, e);
	int code = fd < 0 ? fd : 0;
	fd_close(c.hold[1]);
	int status = 0;
	while (waitpid((pid_t)pid, &status, __WALL) < 0 && errno == EINTR)
		;
	if (code < 0)
		return code;
	if (status != 0)
		return err_set(e, -EACCES,
		        "layer userns: user.max_*_namespaces cannot be set to 0 inside; remedy: "
		        "a writable /proc/sys for agentboxd");
	return take_fd(fd);
}
