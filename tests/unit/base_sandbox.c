#include "base/privs.h"
#include "base/sandbox.h"
#include "tests/t.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const int allowed[] = {SYS_write, SYS_exit_group, SYS_getpid, SYS_newfstatat, SYS_fstat};
static const uint32_t unix_only[] = {AF_UNIX};
static const struct sandbox_arg args[] = {{SYS_socket, 0, unix_only, 1}};

/* Runs in a child: 0 when all is as it must be, else which check failed. */
static int inside(void)
{
	struct err e;
	if (geteuid() == 0 && privs_drop(0x1fff0001, 0x1fff0001, &e) < 0)
		return 1;
	if (geteuid() == 0)
		return 2;
	if (sandbox_enter(allowed, 5, args, 1, SANDBOX_DENY_EPERM, &e) < 0)
		return 3;
	if (syscall(SYS_getpid) <= 0)
		return 4;
	if (syscall(SYS_getppid) != -1 || errno != EPERM)
		return 5;
	if (socket(AF_INET, SOCK_STREAM, 0) != -1 || errno != EPERM)
		return 6;
	/* the high half of a 32-bit argument is not what the kernel looks at */
	if (syscall(SYS_socket, 0x100000002ULL, SOCK_STREAM, 0) != -1 || errno != EPERM)
		return 7;
	return socket(AF_UNIX, SOCK_STREAM, 0) < 0 ? 8 : 0;
}

static int in_child(int (*fn)(void))
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(fn());
	int st;
	waitpid(pid, &st, 0);
	return WIFEXITED(st) ? WEXITSTATUS(st) : 1000 + WTERMSIG(st);
}

static int as_root(void)
{
	struct err e;
	return privs_drop(0, 0, &e) == -EINVAL ? 0 : 1;
}

static int killed(void)
{
	struct err e;
	if (privs_drop(0x1fff0001, 0x1fff0001, &e) < 0 ||
	        sandbox_enter(allowed, 5, NULL, 0, SANDBOX_DENY_KILL, &e) < 0)
		return 1;
	syscall(SYS_getppid);
	return 2;
}

int main(void)
{
	if (geteuid() != 0)
		skip_all("needs root");
	ok(in_child(as_root) == 0, "dropping to root is refused");
	int r = in_child(inside);
	ok(r == 0, "ids dropped, filter in force (step %d)", r);
	r = in_child(killed);
	ok(r == 1000 + 31, "a killing filter kills (%d)", r);
	return done();
}
