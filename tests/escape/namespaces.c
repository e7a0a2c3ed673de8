/* New namespaces and old ones: each would be a place with capabilities. */
#include "escape.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

static long clone_with(unsigned long flags)
{
	long pid = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, 0);
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
	return pid;
}

static const struct {
	const char *name, *file;
	unsigned long flag;
} kinds[] = {
        {"user", "/proc/self/ns/user", 0x10000000},
        {"mnt", "/proc/self/ns/mnt", 0x00020000},
        {"pid", "/proc/self/ns/pid", 0x20000000},
        {"net", "/proc/self/ns/net", 0x40000000},
        {"ipc", "/proc/self/ns/ipc", 0x08000000},
        {"uts", "/proc/self/ns/uts", 0x04000000},
        {"cgroup", "/proc/self/ns/cgroup", 0x02000000},
};

int main(void)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		/* in a child: outside a jail it would go through, and change us */
		pid_t pid = fork();
		if (pid == 0)
			_exit(unshare((int)kinds[i].flag) < 0 ? errno : 0);
		int status = 0;
		waitpid(pid, &status, 0);
		ok(WIFEXITED(status) && WEXITSTATUS(status) == EPERM, "unshare %s", kinds[i].name);
		FAILS(clone_with(kinds[i].flag), EPERM, "clone %s", kinds[i].name);
		int fd = open(kinds[i].file, O_RDONLY | O_CLOEXEC);
		FAILS(setns(fd, 0), EPERM, "setns to the own %s namespace", kinds[i].name);
	}
	FAILS(unshare(0x80), EPERM, "unshare time");
	FAILS(clone_with(0x10000000ul | 0x20000000ul), EPERM, "clone user and pid");
	uint64_t args[11] = {0x10000000};
	FAILS(syscall(435, args, sizeof(args)), ENOSYS, "clone3");
	FAILS(syscall(435, NULL, 0), ENOSYS, "clone3 without arguments");
	long self = syscall(434, getpid(), 0);
	FAILS(setns((int)self, 0x00020000), EPERM, "setns to a pidfd");
	FAILS2(open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC), EROFS, EACCES,
	        "write the own uid_map");
	char zero = 0;
	int fd = open("/proc/sys/user/max_user_namespaces", O_RDONLY | O_CLOEXEC);
	ok(fd >= 0 && read(fd, &zero, 1) == 1 && zero == '0',
	        "no user namespace would be allowed below");
	return done();
}
