/*
 * The pipes that a program in a jail was started with.  They are its own: it may open them again,
 * resize them and change their flags.  None of that reaches past the pipe.
 *
 * `streams flood N` writes N numbered lines in packet mode without blocking; the reader must get
 * them all.
 */
#include "tests/t.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>

static void line(int i)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%07d\n", i);
	while (write(1, text, (size_t)n) < 0) {
		struct pollfd p = {.fd = 1, .events = POLLOUT};
		if (errno != EAGAIN || poll(&p, 1, 60000) <= 0)
			exit(1);
	}
}

static int flood(int lines)
{
	if (fcntl(1, F_SETPIPE_SZ, 1 << 20) < 0 || fcntl(1, F_SETFL, O_DIRECT | O_NONBLOCK) < 0)
		return 2;
	for (int i = 0; i < lines; i++) {
		line(i);
		if (i == lines / 2 && fcntl(1, F_SETPIPE_SZ, 4096) < 0 && errno != EBUSY)
			return 3;
	}
	return 0;
}

static int refused(long ret, int want)
{
	return ret < 0 && errno == want;
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "flood") == 0)
		return flood(atoi(argv[2]));
	struct stat one, two;
	int fd = open("/proc/self/fd/1", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	ok(fd >= 0 && fstat(fd, &two) == 0 && fstat(1, &one) == 0 && one.st_ino == two.st_ino,
	        "stdout opened again is the same pipe");
	ok(refused(lseek(fd, 0, SEEK_SET), ESPIPE), "which has no other contents");
	ok(refused(open("/proc/self/fd/1/..", O_RDONLY | O_CLOEXEC), ENOTDIR),
	        "nor leads anywhere");
	return done();
}
