/* Typing into a terminal that somebody else reads. */
#include "escape.h"

#include <sys/ioctl.h>

static void on(int fd, const char *what)
{
	char byte = 'x';
	int ldisc = 0; /* N_TTY, what it has: nothing changes where it goes through */
	FAILS(ioctl(fd, TIOCSTI, &byte), EPERM, "TIOCSTI on %s", what);
	/* the kernel looks at 32 bits of the request; so must the filter */
	FAILS(syscall(SYS_ioctl, fd, 0x100000000ul | TIOCSTI, &byte), EPERM,
	        "TIOCSTI with a high half on %s", what);
	FAILS(ioctl(fd, TIOCLINUX, &byte), EPERM, "TIOCLINUX on %s", what);
	FAILS(ioctl(fd, TIOCCONS, NULL), EPERM, "TIOCCONS on %s", what);
	FAILS(ioctl(fd, TIOCSETD, &ldisc), EPERM, "TIOCSETD on %s", what);
}

int main(void)
{
	int unlock = 0;
	on(0, "stdin");
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	ok(master >= 0, "a terminal of the jail's own");
	(void)ioctl(master, TIOCSPTLCK, &unlock);
	int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	ok(slave >= 0, "with its other side");
	on(slave, "it");
	FAILS(open("/dev/tty", O_RDWR | O_CLOEXEC), ENXIO, "the terminal of whoever started us");
	FAILS(access("/dev/console", F_OK), ENOENT, "the console");
	FAILS(access("/dev/tty0", F_OK), ENOENT, "a virtual terminal");
	return done();
}
