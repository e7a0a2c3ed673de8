#include "jail/stdio.h"
#include "base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

void stdio_close(int fds[3])
{
	for (int i = 0; i < 3; i++)
		fd_close(take_fd(fds[i]));
}

static struct stdio take_stdio(struct stdio *s)
{
	struct stdio taken = *s;
	*s = (struct stdio)STDIO_NONE;
	return taken;
}

int stdio_pipes(uint32_t uid, uint32_t gid, struct stdio *ret, struct err *e)
{
	auto_stdio struct stdio s = STDIO_NONE;
	for (int i = 0; i < 3; i++) {
		int p[2];
		if (pipe2(p, O_CLOEXEC) < 0)
			return err_errno(e, "stdio: pipe");
		s.ours[i] = i == 0 ? p[1] : p[0];
		s.theirs[i] = i == 0 ? p[0] : p[1];
		/* both ends are one inode */
		if (fchown(s.theirs[i], uid, gid) < 0)
			return err_errno(e, "stdio: owner of a pipe");
		int r = fd_set_nonblock(s.ours[i], 1);
		if (r < 0)
			return err_set(e, r, "stdio: O_NONBLOCK: %s", strerror(-r));
	}
	*ret = take_stdio(&s);
	return 0;
}

int stdio_tty(int devpts, uint32_t uid, uint32_t tty_gid, struct stdio *ret, struct err *e)
{
	auto_stdio struct stdio s = STDIO_NONE;
	s.ours[0] = openat(devpts, "ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	int unlock = 0;
	if (s.ours[0] < 0 || ioctl(s.ours[0], TIOCSPTLCK, &unlock) < 0)
		return err_errno(e, "layer dev: a terminal of the jail's devpts");
	s.theirs[0] = ioctl(s.ours[0], TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (s.theirs[0] < 0)
		return err_errno(e, "layer dev: the terminal's other side");
	if (fchown(s.theirs[0], uid, tty_gid) < 0)
		return err_errno(e, "layer dev: owner of the terminal");
	for (int i = 1; i < 3; i++) {
		s.theirs[i] = fcntl(s.theirs[0], F_DUPFD_CLOEXEC, 0);
		if (s.theirs[i] < 0)
			return err_errno(e, "stdio: dup");
	}
	*ret = take_stdio(&s);
	return 0;
}
