#include "jail/loops.h"
#include "base/fd.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Between "this one is free" and taking it somebody else may: mount(8), another daemon. */
enum { TRIES = 64 };

static int free_device(char path[LOOPS_PATH], struct err *e)
{
	auto_close int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	if (control < 0)
		return err_errno(e, "/dev/loop-control (remedy: modprobe loop)");
	int n = ioctl(control, LOOP_CTL_GET_FREE);
	if (n < 0)
		return err_errno(e, "no loop device is free");
	(void)snprintf(path, LOOPS_PATH, "/dev/loop%d", n);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? err_errno(e, "%s (remedy: devtmpfs on /dev)", path) : fd;
}

int loops_attach(int file, char path[LOOPS_PATH], struct err *e)
{
	for (int i = 0; i < TRIES; i++) {
		auto_close int fd = free_device(path, e);
		if (fd < 0)
			return fd;
		struct loop_config c = {.fd = (uint32_t)file,
		        .block_size = LOOPS_BLOCK,
		        .info = {.lo_flags = LO_FLAGS_AUTOCLEAR}};
		if (ioctl(fd, LOOP_CONFIGURE, &c) == 0)
			return take_fd(fd);
		if (errno != EBUSY)
			return err_errno(e, "%s: attaching a file", path);
	}
	return err_set(e, -EBUSY, "loop devices are taken faster than they are found");
}
