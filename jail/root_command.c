#include "jail/root_command.h"

#include "base/clock.h"
#include "base/fd.h"
#include "jail/child.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static int left(int64_t until_ms)
{
	int64_t ms = until_ms - clock_mono_ms();
	return ms > 0 ? (int)ms : 0;
}

static int start(const struct root_command *c, int out, struct child *ret, struct err *e)
{
	const char *argv[FORM_COMMAND_ARGS + 1] = {NULL}, *at = c->field;
	assert(c->nargs <= FORM_COMMAND_ARGS); /* form_command */
	for (uint32_t i = 0; i < c->nargs; i++) {
		argv[i] = at;
		at += strlen(at) + 1;
	}
	auto_close int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null < 0)
		return err_errno(e, "/dev/null");
	const struct child_spec spec = {.path = argv[0],
	        .argv = argv,
	        .env = c->env,
	        .stdin_fd = c->stdin_fd,
	        .stdout_fd = out,
	        .stderr_fd = c->secret ? null : out,
	        .own_group = true,
	        .uid = c->uid};
	return child_start(&spec, ret, e);
}

static int wait_for(struct pollfd *p, nfds_t n, int64_t until_ms)
{
	int r;
	do {
		r = poll(p, n, left(until_ms));
	} while (r < 0 && errno == EINTR);
	return r;
}

/* Until EOF, the deadline or a full field. */
static size_t collect(int fd, int64_t until_ms, char *to, size_t size)
{
	size_t n = 0;
	while (n < size) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t k = wait_for(&p, 1, until_ms) > 0 ? read(fd, to + n, size - n) : 0;
		if (k <= 0)
			break;
		n += (size_t)k;
	}
	return n;
}

/* Until it has ended or the deadline; what does not fit is read and dropped. */
static size_t collect_some(int fd, int pidfd, int64_t until_ms, char *to, size_t size)
{
	char rest[4096] = {0};
	size_t n = 0;
	for (;;) {
		struct pollfd p[2] = {
		        {.fd = fd, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
		/* Of who prints without end there is always some. */
		if (left(until_ms) == 0 || wait_for(p, 2, until_ms) <= 0)
			return n;
		bool some = p[0].revents & POLLIN;
		ssize_t k = some ? read(fd, n < size ? to + n : rest,
		                           n < size ? size - n : sizeof(rest))
		                 : 0;
		if (k > 0 && n < size)
			n += (size_t)k;
		if (p[1].revents && k <= 0)
			return n;
		if (p[0].revents && k <= 0)
			fd = -1; /* it has closed both streams */
	}
}

int root_command(
        const struct root_command *c, char *to, size_t size, int *ret_status, struct err *e)
{
	int ends[2];
	struct child child = CHILD_NONE;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(e, "pipe");
	auto_close int rd = ends[0];
	auto_close int wr = ends[1];
	int r = start(c, wr, &child, e);
	if (r < 0)
		return r;
	fd_close(take_fd(wr));
	size_t n = c->secret ? collect(rd, c->until_ms, to, size)
	                     : collect_some(rd, child.pidfd, c->until_ms, to, size);
	/* One that printed more than fits ends by that; one whose time is over must not, which
	 * would look as if it had ended by itself. */
	if (c->secret)
		fd_close(take_fd(rd));
	struct pollfd end = {.fd = child.pidfd, .events = POLLIN};
	bool late = wait_for(&end, 1, c->until_ms) <= 0;
	/* With what it has left behind; before it is reaped, so that the number is its own. */
	(void)kill(-child.pid, SIGKILL);
	int status = child_reap(&child, -1);
	if (late)
		return err_set(e, -ETIME, "its command did not end in time");
	if (c->secret && n == size)
		return err_set(e, -E2BIG, "its command printed too much");
	*ret_status = status;
	return (int)n;
}
