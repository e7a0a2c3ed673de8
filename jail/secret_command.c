#include "jail/secret_command.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/ids.h"
#include "jail/child.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int64_t left(int64_t until_ms)
{
	int64_t ms = until_ms - clock_mono_ms();
	return ms > 0 ? ms : 0;
}

static int start(const struct secret_def *def, int out, struct child *ret, struct err *e)
{
	const char *argv[SECRET_ARGS + 1] = {NULL}, *at = def->where;
	assert(def->nargs <= SECRET_ARGS); /* policy_set_check */
	for (uint32_t i = 0; i < def->nargs; i++) {
		argv[i] = at;
		at += strlen(at) + 1;
	}
	auto_close int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null < 0)
		return err_errno(e, "/dev/null");
	const struct child_spec spec = {.path = argv[0],
	        .argv = argv,
	        .stdout_fd = out,
	        .stderr_fd = null,
	        .own_group = true,
	        .uid = ID_SECRETS};
	return child_start(&spec, ret, e);
}

/* Until EOF, the deadline or a full field. */
static size_t collect(int fd, int64_t until_ms, char *to, size_t size)
{
	size_t n = 0;
	while (n < size) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int r = poll(&p, 1, (int)left(until_ms));
		if (r < 0 && errno == EINTR)
			continue;
		ssize_t k = r > 0 ? read(fd, to + n, size - n) : 0;
		if (k <= 0)
			break;
		n += (size_t)k;
	}
	return n;
}

static bool has_ended(const struct child *c, int64_t until_ms)
{
	struct pollfd p = {.fd = c->pidfd, .events = POLLIN};
	int r;
	do {
		r = poll(&p, 1, (int)left(until_ms));
	} while (r < 0 && errno == EINTR);
	return r > 0;
}

int secret_command(
        const struct secret_def *def, int64_t until_ms, char *to, size_t size, struct err *e)
{
	int ends[2];
	struct child c = CHILD_NONE;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(e, "pipe");
	auto_close int rd = ends[0];
	auto_close int wr = ends[1];
	int r = start(def, wr, &c, e);
	if (r < 0)
		return r;
	fd_close(take_fd(wr));
	size_t n = collect(rd, until_ms, to, size);
	fd_close(take_fd(rd)); /* more than fits: it ends by that */
	bool late = !has_ended(&c, until_ms);
	/* With what it has left behind; before it is reaped, so that the number is its own. */
	(void)kill(-c.pid, SIGKILL);
	int status = child_reap(&c, -1);
	if (late)
		return err_set(e, -ETIME, "its command did not end in time");
	if (n == size)
		return err_set(e, -E2BIG, "its command printed too much");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return (int)n;
	char how[32];
	child_status_text(status, how);
	return err_set(e, -EIO, "its command ended with %s", how);
}
