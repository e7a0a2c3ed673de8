#include "jail/userns.h"
#include "base/fd.h"
#include "jail/home.h"
#include "jail/sysc.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/capability.h>

enum { CHILD_STACK = 8192 }; /* the child needs a few hundred bytes */

struct child {
	int hold[2]; /* the child lives until we close our end */
	bool sealed;
	/* the answer: which of `limits` could not be written, and why (errno) */
	size_t at;
	int error;
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
		long n = fd < 0 ? fd : sysc(SYS_write, fd, "0", 1);
		if (n != 1) {
			c->at = i;
			c->error = n < 0 ? (int)-n : EIO;
			return 2;
		}
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

/* What agentboxd is, to return to. */
struct identity {
	uint32_t uid;
	int dumpable;
	struct __user_cap_data_struct caps[2];
};

static int set_caps(struct __user_cap_data_struct *caps)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	return (int)syscall(SYS_capset, &h, caps);
}

static int who_we_are(struct identity *ret)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	ret->uid = geteuid();
	ret->dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	return syscall(SYS_capget, &h, ret->caps) < 0 ? -errno : 0;
}

/* Capabilities as they were: a change of the effective uid takes them away or gives them back. */
static void be_again(struct identity *who)
{
	struct home ids = {0}, caps = {0}, dump = {0};
	while (home_retry(&ids, syscall(SYS_setresuid, -1, who->uid, -1), "uid"))
		;
	while (home_retry(&caps, set_caps(who->caps), "capabilities"))
		;
	/* A change of ids makes it what fs.suid_dumpable says, which is 2 on some hosts: dumps of
	 * our memory, secrets included. */
	while (home_retry(
	        &dump, prctl(PR_SET_DUMPABLE, who->dumpable == 1, 0, 0, 0), "dumpable flag"))
		;
}

/* What the kernel counts for a user (inotify instances and watches, queued signals, locked memory)
 * it charges to the maker of the user namespace as well.  Were that root, one jail could take from
 * all others and from the host's own daemons; so it is an id of the block in question. */
static long clone_as(uint32_t owner, struct clone_args *a, struct child *c)
{
	struct identity self;
	int r = who_we_are(&self);
	if (r < 0)
		return r;
	long pid;
	if (syscall(SYS_setresuid, -1, owner, -1) < 0 || set_caps(self.caps) < 0)
		pid = -errno;
	else
		pid = sysc_clone(a, child_main, c);
	be_again(&self);
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
		return err_errno(e, "layer userns: pipe");
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
	if (WIFSIGNALED(status))
		return err_set(e, -EIO, "layer userns: its first process was killed by signal %d",
		        WTERMSIG(status));
	if (status != 0)
		return err_set(e, -c.error,
		        "layer userns: %s cannot be set to 0 inside: %s (remedy: a writable "
		        "/proc/sys for agentboxd)",
		        limits[c.at], strerror(c.error));
	return take_fd(fd);
}
