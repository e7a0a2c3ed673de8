/*
 * The pipes that a program in a jail was started with.  They are its own: it may open them again,
 * resize them and change their flags.  None of that reaches past the pipe.
 *
 * `streams flood N` writes N numbered lines in packet mode without blocking; the reader must get
 * them all.
 */
#include "escape.h"

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

/* Every descriptor is a pipe, a terminal or /dev/null: never a file of the host's. */
static void kinds(void)
{
	int odd = 0;
	for (int fd = 0; fd < 3; fd++) {
		struct stat st;
		odd += fstat(fd, &st) < 0 || (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode));
	}
	ok(odd == 0, "standard streams are pipes");
	int more = 0;
	for (int fd = 3; fd < 1024; fd++)
		more += fcntl(fd, F_GETFD) >= 0;
	ok(more == 0, "and nothing else is open");
}

static void reopened(void)
{
	struct stat one, two;
	int fd = open("/proc/self/fd/1", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	ok(fd >= 0 && fstat(fd, &two) == 0 && fstat(1, &one) == 0 && one.st_ino == two.st_ino,
	        "stdout opened again is the same pipe");
	FAILS2(lseek(fd, 0, SEEK_SET), ESPIPE, ESPIPE, "which has no other contents");
	FAILS(linkat(AT_FDCWD, "/proc/self/fd/1", AT_FDCWD, "/tmp/kept", AT_SYMLINK_FOLLOW), EXDEV,
	        "and gets no name");
	FAILS(open("/proc/self/fd/1/..", O_RDONLY | O_CLOEXEC), ENOTDIR, "nor leads anywhere");
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "flood") == 0)
		return flood(atoi(argv[2]));
	kinds();
	reopened();
	return done();
}
