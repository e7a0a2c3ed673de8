#include "abctl/capture.h"
#include "abctl/fail.h"
#include "abctl/verb.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int capture(int (*fn)(const void *ctx), const void *ctx, const char *what, size_t max, char **ret)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return fail_system("pipe: %s", strerror(errno));
	pid_t pid = fork();
	if (pid == 0) {
		if (dup2(ends[1], STDOUT_FILENO) < 0)
			_exit(fail_system("stdout of a child: %s", strerror(errno)));
		_exit(fn(ctx));
	}
	fd_close(ends[1]);
	auto_close int from = ends[0];
	if (pid < 0)
		return fail_system("fork: %s", strerror(errno));
	size_t len = 0;
	int r = fd_slurp(from, max, ret, &len);
	if (r < 0)
		kill(pid, SIGKILL);
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r < 0)
		return fail_system("the output of %s: %s", what, strerror(-r));
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SYSTEM;
}
