/* fd_openat2 beside somebody who renames all the time, anywhere on the host. */
#include "base/fd.h"
#include "tests/t.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/openat2.h>

enum { ROUNDS = 20000 };

static void rename_for_ever(int dir)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		if (renameat(dir, "one", dir, "two") < 0 || renameat(dir, "two", dir, "one") < 0)
			_exit(1);
}

int main(void)
{
	char path[] = "/tmp/agentbox-openat.XXXXXX";
	must(mkdtemp(path) != NULL, "directory");
	auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(mkdirat(dir, "etc", 0755) == 0 && mkdirat(dir, "usr", 0755) == 0, "a root");
	auto_close int file = openat(dir, "usr/release", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	auto_close int other = openat(dir, "one", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	must(file >= 0 && other >= 0 && symlinkat("../usr/release", dir, "etc/release") == 0,
	        "with a link that goes up");
	pid_t renamer = fork();
	if (renamer == 0)
		rename_for_ever(dir);
	const struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	int again = 0, failed = 0;
	for (int i = 0; i < ROUNDS; i++) {
		auto_close int raw =
		        (int)syscall(SYS_openat2, dir, "etc/release", &how, sizeof(how));
		again += raw < 0 && errno == EAGAIN;
		auto_close int fd = fd_openat2(dir, "etc/release", O_PATH, RESOLVE_IN_ROOT);
		failed += fd < 0;
	}
	ok(failed == 0, "%d opens succeed (the kernel said EAGAIN to %d others)", ROUNDS, again);
	ok(fd_openat2(dir, "etc/none", O_PATH, RESOLVE_IN_ROOT) == -ENOENT, "other errors at once");
	ok(fd_openat2(dir, "../x", O_PATH, RESOLVE_BENEATH) == -EXDEV, "the way out is none");
	ok(kill(renamer, SIGKILL) == 0 && waitpid(renamer, NULL, 0) == renamer, "renamer ended");
	static const char *const names[] = {"etc/release", "usr/release", "one", "two"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unlinkat(dir, names[i], 0);
	ok(unlinkat(dir, "etc", AT_REMOVEDIR) == 0 && unlinkat(dir, "usr", AT_REMOVEDIR) == 0 &&
	                rmdir(path) == 0,
	        "cleaned up");
	return done();
}
