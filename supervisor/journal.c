#include "supervisor/journal.h"

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096, RECORD_MAX = 2 * LIMIT_YAML_FILE };
#define MAGIC 0x41424a31u /* "ABJ1": changes with the meaning of anything here */
_Static_assert(sizeof(struct journal_state) <= PAGE, "the state is one page");
_Static_assert((int)RECORD_MAX >= (int)LIMIT_PUMP_READ, "a read is one record");

struct record {
	uint32_t type, bytes;
};

struct journal {
	int fd; /* owned; its offset is where the next record goes */
	struct journal_state *state;
};

struct journal_state *journal_state(struct journal *j)
{
	return j->state;
}

/* ---- life ---- */

static struct journal *map(int fd, struct err *e)
{
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		(void)err_errno(e, "journal: map");
		fd_close(fd);
		return NULL;
	}
	struct journal *j = xnew(struct journal);
	j->fd = fd;
	j->state = p;
	return j;
}

struct journal *journal_new(int dirfd, const char *run, struct err *e)
{
	static const char zeroes[PAGE];
	journal_remove(dirfd, run);
	int fd = openat(dirfd, run, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		(void)err_errno(e, "journal of %.40s", run);
		return NULL;
	}
	/* Written, not a hole: a store into a page without a block would be SIGBUS on a full disk.
	 */
	int r = fd_write_all(fd, zeroes, sizeof(zeroes));
	if (r < 0) {
		(void)err_set(e, r, "journal of %.40s: %s", run, strerror(-r));
		fd_close(fd);
		journal_remove(dirfd, run);
		return NULL;
	}
	struct journal *j = map(fd, e);
	if (!j)
		return NULL;
	struct journal_state *s = j->state;
	s->size = sizeof(*s);
	s->end = PAGE;
	(void)str_copy(s->run, sizeof(s->run), run);
	s->magic = MAGIC;
	return j;
}

struct journal *journal_open(int dirfd, const char *run, struct err *e)
{
	struct stat st;
	auto_close int fd = openat(dirfd, run, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0) {
		(void)err_errno(e, "its journal");
		return NULL;
	}
	struct journal *j = st.st_size < PAGE ? NULL : map(take_fd(fd), e);
	struct journal_state *s = j ? j->state : NULL;
	if (j && s->magic == MAGIC && s->size == sizeof(*s) && strcmp(s->run, run) == 0 &&
	        s->end >= PAGE && s->end <= (uint64_t)st.st_size && !s->broken &&
	        lseek(j->fd, (off_t)s->end, SEEK_SET) >= 0) {
		s->why[sizeof(s->why) - 1] = '\0';
		return j;
	}
	(void)err_set(e, -EBADMSG, "its journal is %s",
	        s && s->broken ? "not complete, the disk was full" : "of another version");
	journal_close(j);
	return NULL;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	munmap(j->state, PAGE);
	fd_close(j->fd);
	free(j);
}

void journal_remove(int dirfd, const char *run)
{
	(void)unlinkat(dirfd, run, 0); /* not there: as wanted; else the next sweep tries again */
}

void journal_sweep(int dirfd, bool (*wanted)(void *ctx, const char *run), void *ctx)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		fd_close(fd);
		return;
	}
	for (struct dirent *x; (x = readdir(d));)
		if (id_valid(x->d_name, "run") && !wanted(ctx, x->d_name))
			journal_remove(dirfd, x->d_name);
	closedir(d);
}

/* ---- use ---- */

static int write_both(int fd, struct iovec *v, int n)
{
	while (n) {
		ssize_t k = writev(fd, v, n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -errno;
		for (; n && (size_t)k >= v->iov_len; v++, n--)
			k -= (ssize_t)v->iov_len;
		if (n) {
			v->iov_base = (char *)v->iov_base + k;
			v->iov_len -= (size_t)k;
		}
	}
	return 0;
}

int journal_put(struct journal *j, enum journal_type t, const void *p, size_t n, struct err *e)
{
	struct journal_state *s = j->state;
	struct record head = {.type = (uint32_t)t, .bytes = (uint32_t)n};
	struct iovec v[] = {{&head, sizeof(head)}, {(void *)(uintptr_t)p, n}};
	if (s->broken)
		return 0;
	int r = n > RECORD_MAX ? -E2BIG : write_both(j->fd, v, n ? 2 : 1);
	if (r < 0) {
		s->broken = 1;
		return err_set(e, r, "journal of %s: %s", s->run, strerror(-r));
	}
	s->end += sizeof(head) + n;
	return 0;
}

int journal_each(struct journal *j, journal_fn *each, void *ctx, struct err *e)
{
	auto_free char *bytes = xcalloc(1, RECORD_MAX);
	uint64_t at = PAGE;
	const uint64_t end = j->state->end;
	while (at < end) {
		struct record head;
		ssize_t n = fd_pread_full(j->fd, &head, sizeof(head), (off_t)at);
		at += sizeof(head);
		if (n != (ssize_t)sizeof(head) || head.type >= JOURNAL_TYPES ||
		        head.bytes > RECORD_MAX || at + head.bytes > end)
			return err_set(e, -EBADMSG, "its journal is damaged");
		n = fd_pread_full(j->fd, bytes, head.bytes, (off_t)at);
		if (n != (ssize_t)head.bytes)
			return err_set(e, -EIO, "its journal cannot be read");
		at += head.bytes;
		int r = each(ctx, (enum journal_type)head.type, bytes, head.bytes);
		if (r < 0)
			return r;
	}
	return 0;
}
