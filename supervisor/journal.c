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

enum {
	PAGE = 8192,
	RECORD_MAX = 2 * LIMIT_YAML_FILE,
	JOURNAL_FILE = 32 << 10, /* what each counts for beside its bytes */
	DEATHS_MAX = 3, /* one may be chance, and so may two; each is an outage for all runs */
};
#define MAGIC 0x41424a34u /* "ABJ4": changes with the meaning of anything here */
_Static_assert(sizeof(struct journal_state) <= PAGE, "the state is two pages");
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

void journal_driving(struct journal *j, bool on)
{
	if (j)
		j->state->driving = on;
}

int journal_deaths(struct journal *j, struct err *e)
{
	struct journal_state *s = j->state;
	if (s->driving && s->deaths < DEATHS_MAX)
		s->deaths++;
	s->driving = 0;
	return s->deaths < DEATHS_MAX
	               ? 0
	               : err_set(e, -ELOOP,
	                         "%d supervisors in a row ended while they read its agent's "
	                         "output (its raw log has it)",
	                         DEATHS_MAX);
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

static DIR *open_dir(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		fd_close(fd);
	return d;
}

void journal_sweep(int dirfd, journal_which_fn *wanted, void *ctx)
{
	DIR *d = open_dir(dirfd);
	if (!d)
		return;
	for (struct dirent *x; (x = readdir(d));)
		if (id_valid(x->d_name, "run") && !wanted(ctx, x->d_name))
			journal_remove(dirfd, x->d_name);
	closedir(d);
}

/* ---- afterwards ---- */

int journal_sync_fd(const struct journal *j)
{
	int fd = fcntl(j->fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* Gives the middle back to the disk; where that cannot be, the end goes. */
static void cut(struct journal *j)
{
	struct journal_state *s = j->state;
	uint64_t to = s->end;
	for (uint32_t i = 0; i < s->nmarks && i < JOURNAL_MARKS; i++) {
		uint64_t at = s->marks[(s->nmarks - 1 - i) % JOURNAL_MARKS];
		if (s->end - at > JOURNAL_KEPT - JOURNAL_MARK)
			break;
		to = at;
	}
	if (!s->first_mark || to <= s->first_mark)
		return;
	s->gap_from = s->first_mark;
	s->gap_to = to;
	if (fallocate(j->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)s->gap_from,
	            (off_t)(to - s->gap_from)) == 0)
		return;
	s->gap_to = s->end;
	if (ftruncate(j->fd, (off_t)s->gap_from) < 0)
		s->gap_from = s->gap_to = 0; /* it stays whole, and counts as that */
}

uint64_t journal_end(struct journal *j)
{
	struct stat st;
	if (j->state->end > PAGE + (uint64_t)JOURNAL_KEPT)
		cut(j);
	j->state->ended = 1;
	memset(&j->state->agent.veil, 0, sizeof(j->state->agent.veil));
	return fstat(j->fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : JOURNAL_KEPT;
}

struct kept {
	char run[ID_MAX];
	uint64_t bytes;
};

static int by_run(const void *a, const void *b)
{
	return strcmp(((const struct kept *)a)->run, ((const struct kept *)b)->run);
}

/* All of them; ids are in the order in which runs were accepted. */
static struct kept *list_kept(int dirfd, size_t *ret_n, uint64_t *ret_sum)
{
	struct kept *all = NULL;
	size_t n = 0, room = 0;
	struct stat st;
	DIR *d = open_dir(dirfd);
	for (struct dirent *x; d && (x = readdir(d));) {
		if (!id_valid(x->d_name, "run") || fstatat(dirfd, x->d_name, &st, 0) < 0)
			continue;
		if (n == room) {
			room = room ? 2 * room : 64;
			all = xrealloc(all, room, sizeof(*all));
		}
		(void)str_copy(all[n].run, sizeof(all[n].run), x->d_name); /* an id */
		/* A small file costs more than its bytes: its inode, and this walk. */
		all[n].bytes = (uint64_t)st.st_blocks * 512 + JOURNAL_FILE;
		*ret_sum += all[n++].bytes;
	}
	if (d)
		closedir(d);
	if (n)
		qsort(all, n, sizeof(*all), by_run);
	*ret_n = n;
	return all;
}

uint64_t journal_prune(int dirfd, uint64_t most, journal_which_fn *in_use, void *ctx)
{
	size_t n;
	uint64_t sum = 0;
	auto_free struct kept *all = list_kept(dirfd, &n, &sum);
	for (size_t i = 0; i < n && sum > most; i++) {
		if (in_use(ctx, all[i].run))
			continue;
		journal_remove(dirfd, all[i].run);
		sum -= all[i].bytes;
	}
	return sum;
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

/* The next record begins here. */
static void mark(struct journal_state *s)
{
	uint64_t last = s->nmarks ? s->marks[(s->nmarks - 1) % JOURNAL_MARKS] : PAGE;
	if (s->end - last < JOURNAL_MARK)
		return;
	if (!s->nmarks)
		s->first_mark = s->end;
	s->marks[s->nmarks++ % JOURNAL_MARKS] = s->end;
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
	mark(s);
	return 0;
}

/* Each time with another number; the two streams' differ by their lowest bit. */
void journal_waits(
        struct journal *j, const struct veil *v, unsigned stream, const char *p, size_t n)
{
	struct journal_state *s = j->state;
	char bytes[VEIL_WINDOW];
	s->nwaits[stream] = 0;
	if (n == 0 || n > sizeof(bytes))
		return;
	memcpy(bytes, p, n);
	s->waits_number[stream] += 2;
	veil_crypt(v, s->waits_number[stream] + stream, bytes, n);
	memcpy(s->waits[stream], bytes, n);
	s->nwaits[stream] = (uint32_t)n;
}

size_t journal_waited(
        struct journal *j, const struct veil *v, unsigned stream, char ret[VEIL_WINDOW])
{
	const struct journal_state *s = j->state;
	size_t n = s->nwaits[stream] <= VEIL_WINDOW ? s->nwaits[stream] : 0;
	memcpy(ret, s->waits[stream], n);
	veil_crypt(v, s->waits_number[stream] + stream, ret, n);
	return n;
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

/* ---- as a raw log ---- */

int journal_reader_open(int dirfd, const char *run, struct journal_reader *ret, struct err *e)
{
	struct journal_state s;
	auto_close int fd = openat(dirfd, run, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_errno(e, "the raw log of run %.40s", run);
	if (fd_pread_full(fd, &s, sizeof(s), 0) != (ssize_t)sizeof(s) || s.magic != MAGIC ||
	        s.size != sizeof(s) || strcmp(s.run, run) != 0)
		return err_set(e, -ENOENT, "the raw log of run %.40s is of another version", run);
	*ret = (struct journal_reader){.fd = take_fd(fd), .at = PAGE};
	return 0;
}

void journal_reader_done(struct journal_reader *r)
{
	fd_close(r->fd);
	r->fd = -1;
}

int journal_reader_next(
        struct journal_reader *r, struct buf *into, struct journal_raw *ret, struct err *e)
{
	struct journal_state s;
	struct record head;
	*ret = (struct journal_raw){0};
	if (fd_pread_full(r->fd, &s, sizeof(s), 0) != (ssize_t)sizeof(s))
		return err_set(e, -EIO, "a raw log cannot be read");
	if (s.gap_to > s.gap_from && r->at >= s.gap_from && r->at < s.gap_to) {
		ret->gap = s.gap_to - r->at;
		r->at = s.gap_to;
		return 1;
	}
	if (r->at >= s.end) {
		ret->broken = s.broken;
		ret->ended = s.ended || s.broken;
		return 0;
	}
	ssize_t n = fd_pread_full(r->fd, &head, sizeof(head), (off_t)r->at);
	if (n != (ssize_t)sizeof(head) || head.type >= JOURNAL_TYPES || head.bytes > RECORD_MAX ||
	        r->at + sizeof(head) + head.bytes > s.end)
		return err_set(e, -EBADMSG, "a raw log is damaged");
	buf_clear(into);
	int rc = buf_reserve(into, head.bytes);
	if (rc < 0)
		return err_set(e, rc, "a raw log: %u bytes at once", head.bytes);
	n = fd_pread_full(r->fd, into->p, head.bytes, (off_t)(r->at + sizeof(head)));
	if (n != (ssize_t)head.bytes)
		return err_set(e, -EIO, "a raw log cannot be read");
	r->at += sizeof(head) + head.bytes;
	ret->type = (enum journal_type)head.type;
	ret->p = into->p;
	ret->n = head.bytes;
	return 1;
}
