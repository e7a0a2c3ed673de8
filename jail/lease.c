#include "jail/lease.h"
#include "base/fd.h"

#include <assert.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The last block ends below 2^31: some programs still keep ids in an int. */
_Static_assert((uint64_t)ID_STORE_BASE + (uint64_t)(ID_LEASES + 1) * ID_BLOCK <= 0x40000000ull,
        "the lease range has an end that nobody else uses");

static bool is_held(const struct leases *l, uint32_t i)
{
	return l->held[i / 64] >> (i % 64) & 1;
}

static void mark(struct leases *l, uint32_t i, bool held)
{
	uint64_t bit = (uint64_t)1 << (i % 64);
	l->held[i / 64] = held ? l->held[i / 64] | bit : l->held[i / 64] & ~bit;
	l->count = held ? l->count + 1 : l->count - 1;
}

uint32_t lease_base(uint32_t i)
{
	return (uint32_t)ID_STORE_BASE + i * (uint32_t)ID_BLOCK;
}

int leases_open(struct leases *l, const char *path, struct err *e)
{
	memset(l, 0, sizeof(*l));
	l->fd = -1;
	int r = file_make_parent(path);
	if (r < 0)
		return err_set(e, r, "directory of %s: %s", path, strerror(-r));
	auto_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
	if (fd < 0)
		return err_errno(e, "lease table %s", path);
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_errno(e, "lease table %s", path);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
		return err_set(
		        e, -EPERM, "lease table %s: not a file that only root may write", path);
	/* A random start: a daemon that was killed and started again, or one that runs beside
	 * this one, is unlikely to look at the blocks that were in use a moment ago. */
	uint32_t start = 0;
	(void)!getrandom(&start, sizeof(start), 0);
	l->next = 1 + start % ID_LEASES;
	l->fd = take_fd(fd);
	return 0;
}

void leases_close(struct leases *l)
{
	fd_close(l->fd); /* the last close of an open file drops its OFD locks */
	memset(l, 0, sizeof(*l));
	l->fd = -1;
}

static int lock_byte(int fd, uint32_t i, short type)
{
	struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = i, .l_len = 1};
	return fcntl(fd, F_OFD_SETLK, &range) < 0 ? -errno : 0;
}

/* getpriority fails with ESRCH when no process has the real uid: one hash look-up in the
 * kernel, instead of a walk through /proc.  What it says of errors counts as "in use". */
static bool has_process(uint32_t base)
{
	static const uint32_t inner[] = {0, ID_INNER_AGENT, ID_INNER_INIT};
	for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++) {
		errno = 0;
		if (getpriority(PRIO_USER, base + inner[i]) != -1 || errno != ESRCH)
			return true;
	}
	return false;
}

int lease_take(struct leases *l, uint32_t *ret_base, struct err *e)
{
	for (uint32_t tries = 0; tries < ID_LEASES; tries++) {
		uint32_t i = l->next;
		l->next = i == ID_LEASES ? 1 : i + 1;
		if (is_held(l, i))
			continue;
		int r = lock_byte(l->fd, i, F_WRLCK);
		if (r == -EAGAIN || r == -EACCES)
			continue; /* another daemon's */
		if (r < 0)
			return err_set(e, r, "lease table: %s", strerror(-r));
		if (has_process(lease_base(i))) {
			(void)lock_byte(l->fd, i, F_UNLCK);
			continue;
		}
		mark(l, i, true);
		*ret_base = lease_base(i);
		return 0;
	}
	return err_set(e, -EAGAIN, "no block of user ids is free (%u held here)", l->count);
}

uint32_t lease_index(uint32_t base)
{
	return (base - (uint32_t)ID_STORE_BASE) / (uint32_t)ID_BLOCK;
}

int lease_drop(struct leases *l, uint32_t base)
{
	uint32_t i = lease_index(base);
	assert(base > ID_STORE_BASE && i <= ID_LEASES && lease_base(i) == base && is_held(l, i));
	int r = lock_byte(l->fd, i, F_UNLCK); /* may have to split a range, which takes memory */
	if (r == 0)
		mark(l, i, false);
	return r;
}
