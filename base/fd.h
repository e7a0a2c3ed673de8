/*
 * fd.h - file descriptors: born CLOEXEC, invalid is -1, closed by cleanup.
 */
#ifndef BASE_FD_H
#define BASE_FD_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

void fd_close(int fd); /* keeps errno; -1 is fine */

static inline void auto_close_(int *fd)
{
	fd_close(*fd);
}
#define auto_close __attribute__((cleanup(auto_close_)))

#define take_fd(fd)                                                                                \
	({                                                                                         \
		int taken_ = (fd);                                                                 \
		(fd) = -1;                                                                         \
		taken_;                                                                            \
	})

/* All bytes or an error; EINTR and short transfers are handled. 0 or -errno. */
MUST_USE int fd_write_all(int fd, const void *p, size_t n);
/* Reads until n bytes or EOF.  Bytes read, or -errno. */
MUST_USE ssize_t fd_read_full(int fd, void *p, size_t n);
MUST_USE ssize_t fd_pread_full(int fd, void *p, size_t n, off_t at);

/* The whole of a regular file or pipe, at most `max` bytes (-E2BIG beyond), NUL-terminated.
 * *ret is owned.  The *at form resolves `path` below `dirfd`. */
MUST_USE int fd_slurp(int fd, size_t max, char **ret, size_t *ret_len);
MUST_USE int file_slurp(const char *path, size_t max, char **ret, size_t *ret_len);
MUST_USE int file_slurp_at(int dirfd, const char *path, size_t max, char **ret, size_t *ret_len);
/* The directory above `path`, for everybody to pass through whatever the umask is; one that is
 * there stays as it is. */
MUST_USE int file_make_parent(const char *path);
/* Only a regular file, without ever waiting for what is none (a FIFO, a device). */
MUST_USE int file_slurp_plain_at(
        int dirfd, const char *path, size_t max, char **ret, size_t *ret_len, struct err *e);
/* What one of these answered, in words; `max` as given to it.  Returns the code. */
int slurp_err(struct err *e, int code, const char *label, size_t max);

/* A sealed, read-only memfd with these bytes.  fd (owned) or -errno. */
MUST_USE int fd_sealed_memfd(const char *name, const void *p, size_t n);

/* openat2 with O_CLOEXEC, resolved as RESOLVE_* says.  fd (owned) or -errno.  The kernel gives up
 * with EAGAIN where a ".." (also one inside a link) meets any rename or mount on the host at that
 * moment; it is asked again. */
MUST_USE int fd_openat2(int dir, const char *path, uint64_t flags, uint64_t resolve);

int fd_dup(int fd); /* CLOEXEC, above stdio; owned, or -1 with errno */
MUST_USE int fd_set_nonblock(int fd, int on);
/* Number of open descriptors of this process, or -errno (tests and leak checks). */
int fd_count(void);

#endif
