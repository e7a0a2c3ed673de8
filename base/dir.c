#include "base/dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool among(const char *name, const char *const *names, size_t n)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return true;
	for (size_t i = 0; i < n; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

int dir_stranger(int dirfd, const char *const *names, size_t n, char ret[DIR_NAME_SHOWN])
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		int r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	bool found = false;
	for (struct dirent *it; !found && (it = readdir(d));) {
		found = !among(it->d_name, names, n);
		if (found)
			(void)snprintf(ret, DIR_NAME_SHOWN, "%.64s", it->d_name);
	}
	closedir(d);
	return found;
}
