/* What a supervisor that was taken over may still ask the kernel for. */
#include "supervisor/filter.h"

#include "base/privs.h"
#include "supervisor/loop.h"
#include "tests/t.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int ring_fd(void)
{
	for (int fd = 3; fd < 64; fd++) {
		char link[32], to[64] = "";
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		if (readlink(link, to, sizeof(to) - 1) > 0 && strstr(to, "io_uring"))
			return fd;
	}
	return -1;
}

#define REFUSED(call)                                                                              \
	({                                                                                         \
		errno = 0;                                                                         \
		ok((call) < 0 && errno == EPERM, "%s", #call);                                     \
	})

/* In a child, whose TAP lines are counted by the exit code: there is no way back. */
static int taken_over(int inet, int ring)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
	struct io_uring_params p = {0};
	char *const argv[] = {(char[]){"true"}, NULL};
	REFUSED(socket(AF_INET, SOCK_STREAM, 0));
	REFUSED(socket(AF_INET6, SOCK_DGRAM, 0));
	REFUSED(socket(AF_UNIX, SOCK_STREAM, 0));
	REFUSED(socket(AF_NETLINK, SOCK_RAW, 0));
	REFUSED(socketpair(AF_UNIX, SOCK_STREAM, 0, (int[2]){0}));
	REFUSED(connect(inet, (struct sockaddr *)&to, sizeof(to)));
	REFUSED(bind(inet, (struct sockaddr *)&to, sizeof(to)));
	REFUSED(listen(inet, 1));
	REFUSED(syscall(SYS_execve, "/bin/true", argv, NULL));
	REFUSED(syscall(SYS_execveat, inet, "", argv, NULL, AT_EMPTY_PATH));
	REFUSED(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
	REFUSED(syscall(SYS_clone3, NULL, 0));
	REFUSED(unshare(CLONE_NEWUSER));
	REFUSED(ptrace(PTRACE_TRACEME, 0, 0, 0));
	REFUSED(setuid(0));
	REFUSED(chmod("/nowhere", 0777));
	REFUSED(syscall(SYS_mount, "a", "/nowhere", "tmpfs", 0, NULL));
	REFUSED(syscall(SYS_bpf, 0, NULL, 0));
	REFUSED(syscall(SYS_pidfd_getfd, inet, 0, 0));
	REFUSED(syscall(SYS_process_vm_writev, getpid(), NULL, 0, NULL, 0, 0));
	REFUSED(syscall(SYS_io_uring_setup, 1, &p)); /* a ring without restrictions */
#ifndef SANITIZED /* the sanitizers' runtimes may map what they like */
	ok(mmap(NULL, 4096, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	                MAP_FAILED,
	        "no memory that is written and executed");
#endif
	int efd = 0;
	ok(syscall(SYS_io_uring_register, ring, IORING_REGISTER_EVENTFD, &efd, 1) < 0 &&
	                errno == EACCES,
	        "the ring takes no registration");
	ok(getpid() > 0 && syscall(SYS_memfd_create, "x", 0) >= 0, "what it needs goes on");
	return t_failed;
}

int main(void)
{
	if (geteuid() != 0)
		skip_all("needs root, to give it up");
	int *counted =
	        mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(counted != MAP_FAILED, "memory to count in");
	pid_t pid = fork();
	if (pid == 0) {
		struct err e = {0};
		int inet = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		struct loop *l = loop_new(64, &e);
		int ring = ring_fd();
		if (inet < 0 || !l || ring < 0 || privs_drop(0x1fff0001, 0x1fff0001, &e) < 0 ||
		        loop_enable(l, &e) < 0 || filter_enter(&e) < 0) {
			printf("# %s\n", e.text);
			fflush(stdout);
			_exit(111);
		}
		int failed = taken_over(inet, ring);
		*counted = t_count;
		_exit(failed);
	}
	int status = 0;
	waitpid(pid, &status, 0);
	t_count = *counted; /* those of the child too */
	ok(t_count > 20 && WIFEXITED(status) && WEXITSTATUS(status) == 0, "all of that");
	return done();
}
