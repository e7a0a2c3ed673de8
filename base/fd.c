#include "base/fd.h"
#include "base/mem.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/openat2.h>

enum {
	OPEN_TRIES = 1000 /* one in a hundred fails beside somebody who renames all the time */
};

void fd_close(int fd)
{
	if (fd < 0)
		return;
	int saved = errno;
	(void)close(fd); /* EINTR closes on Linux too; EIO was reported by fsync where it matters */
	errno = saved;
}

int fd_write_all(int fd, const void *p, size_t n)
{
	const char *at = p;
	while (n > 0) {
		ssize_t k = write(fd, at, n);
		if (k < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		at += k;
		n -= (size_t)k;
	}
	return 0;
}

static ssize_t read_full(int fd, char *to, size_t n, off_t at)
{
	size_t have = 0;
	while (have < n) {
		ssize_t k = at < 0 ? read(fd, to + have, n - have)
		                   : pread(fd, to + have, n - have, at + (off_t)have);
		if (k < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (k == 0)
			break;
		have += (size_t)k;
	}
	return (ssize_t)have;
}

ssize_t fd_read_full(int fd, void *p, size_t n)
{
	return read_full(fd, p, n, -1);
}

ssize_t fd_pread_full(int fd, void *p, size_t n, off_t at)
{
	return read_full(fd, p, n, at);
}

int fd_slurp(int fd, size_t max, char **ret, size_t *ret_len)
{
	size_t have = 0, room = 4096 < max + 1 ? 4096 : max + 1;
	char *bytes = malloc(room + 1);
	if (!bytes)
		return -ENOMEM;
	for (;;) {
		ssize_t k = fd_read_full(fd, bytes + have, room - have);
		if (k < 0) {
			free(bytes);
			return (int)k;
		}
		have += (size_t)k;
		if (have < room)
			break;
		if (have > max) {
			free(bytes);
			return -E2BIG;
		}
		room = room * 2 < max + 1 ? room * 2 : max + 1;
		char *more = realloc(bytes, room + 1);
		if (!more) {
			free(bytes);
			return -ENOMEM;
		}
		bytes = more;
	}
	bytes[have] = '\0';
	*ret = bytes;
	if (ret_len)
		*ret_len = have;
	return 0;
}

int file_slurp_at(int dirfd, const char *path, size_t max, char **ret, size_t *ret_len)
{
	auto_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return fd_slurp(fd, max, ret, ret_len);
}

int slurp_err(struct err *e, int code, const char *label, size_t max)
{
	if (code == -E2BIG)
		return err_set(e, code, "%s: larger than %zu KiB", label, max >> 10);
	return err_set(e, code, "%s: %s", label, strerror(-code));
}

int file_slurp_plain_at(
        int dirfd, const char *path, size_t max, char **ret, size_t *ret_len, struct err *e)
{
	auto_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "%s: not a regular file", path);
	int r = fd_slurp(fd, max, ret, ret_len);
	return r < 0 ? slurp_err(e, r, path, max) : 0;
}

int file_slurp(const char *path, size_t max, char **ret, size_t *ret_len)
{
	return file_slurp_at(AT_FDCWD, path, max, ret, ret_len);
}

int file_make_parent(const char *path)
{
	auto_free char *dir = xstrdup(path);
	char *slash = strrchr(dir, '/');
	if (!slash || slash == dir)
		return 0;
	*slash = '\0';
	if (mkdir(dir, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	return chmod(dir, 0755) < 0 ? -errno : 0;
}

int fd_sealed_memfd(const char *name, const void *p, size_t n)
{
	auto_close int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	int r = fd_write_all(fd, p, n);
	if (r < 0)
		return r;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return take_fd(fd);
}

int fd_openat2(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
	const struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = resolve};
	for (int i = 0; i < OPEN_TRIES; i++) {
		long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
		if (fd >= 0)
			return (int)fd;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return -EAGAIN;
}

int fd_dup(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

int fd_set_nonblock(int fd, int on)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return -errno;
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

int fd_count(void)
{
	DIR *d = opendir("/proc/self/fd");
	if (!d)
		return -errno;
	int n = 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n - 3; /* ".", ".." and the directory itself */
}
