/* Taking more than a share: every good that the kernel counts has an end, and the end is the
 * jail's. */
#include "attempt.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

enum {
	/* Far above what the harness's policy gives (4 MiB, 200 files), far below what hurts. */
	BYTES_MOST = 64 << 20,
	FILES_MOST = 20000,
	TERMINALS_MOST = 130,
	SIGNALS_MOST = 6000,
	VMAS_MOST = 200000,
};

static enum answer fill_bytes(const struct attempt *a)
{
	static char block[1 << 16];
	char path[64];
	(void)snprintf(path, sizeof(path), "%s/fill", a->path);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	ssize_t n = fd < 0 ? 0 : 1;
	if (n == 0)
		return BROKEN;
	for (long done = 0; done < BYTES_MOST && n > 0; done += n)
		n = write(fd, block, sizeof(block));
	enum answer answer = answer_of(n, a);
	close(fd);
	(void)unlink(path);
	return answer;
}

static enum answer fill_inodes(const struct attempt *a)
{
	char path[64];
	int made = 0, r = 0, code = 0;
	for (; made < FILES_MOST && r >= 0; made++) {
		(void)snprintf(path, sizeof(path), "%s/f%d", a->path, made);
		r = mknod(path, S_IFREG | 0600, 0);
		code = errno;
	}
	for (int i = 0; i < made; i++) {
		(void)snprintf(path, sizeof(path), "%s/f%d", a->path, i);
		(void)unlink(path);
	}
	errno = code;
	return answer_of(r, a);
}

static enum answer huge_file(const struct attempt *a)
{
	int fd = open("/tmp/hole", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	(void)signal(SIGXFSZ, SIG_IGN);
	enum answer answer = answer_of(ftruncate(fd, (off_t)100 << 40), a);
	(void)unlink("/tmp/hole");
	return answer;
}

/* The kernel keeps it with the inode, of /tmp for as long as that lives, and charges nobody. */
static enum answer long_list(const struct attempt *a)
{
	enum { USERS = 8000, USER_OBJ = 1, USER = 2, GROUP_OBJ = 4, MASK = 16, OTHER = 32 };
	static struct {
		uint32_t version;
		struct {
			uint16_t tag, perm;
			uint32_t id;
		} of[USERS + 4];
	} list = {.version = 2};
	static const uint16_t ends[] = {GROUP_OBJ, MASK, OTHER};
	for (size_t i = 0; i < USERS + 4; i++) {
		list.of[i].tag = i == 0 ? USER_OBJ : i <= USERS ? USER : ends[i - USERS - 1];
		list.of[i].perm = 6;
		list.of[i].id = list.of[i].tag == USER ? 1000 : UINT32_MAX;
	}
	int fd = open("/tmp/listed", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	long r = syscall(SYS_fsetxattr, fd, "system.posix_acl_access", &list, sizeof(list), 0);
	enum answer answer = answer_of(r, a);
	close(fd);
	(void)unlink("/tmp/listed");
	return answer;
}

static enum answer pin_memory(const struct attempt *a)
{
	size_t n = (size_t)1 << 20;
	void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return answer_of(p == MAP_FAILED ? -1 : mlock(p, n), a);
}

static enum answer map_areas(const struct attempt *a)
{
	void *p = NULL;
	for (int i = 0; i < VMAS_MOST && p != MAP_FAILED; i++) /* no two that could be one */
		p = mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		        0);
	return answer_of(p == MAP_FAILED ? -1 : 0, a);
}

static enum answer take_terminals(const struct attempt *a)
{
	int fd = 0;
	for (int i = 0; i < TERMINALS_MOST && fd >= 0; i++)
		fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	return answer_of(fd, a);
}

/* A timer's signal is queued when it is made. */
static enum answer take_signals(const struct attempt *a)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	timer_t timer;
	int r = 0;
	for (int i = 0; i < SIGNALS_MOST && r >= 0; i++)
		r = timer_create(CLOCK_MONOTONIC, &event, &timer);
	return answer_of(r, a);
}

static enum answer take_descriptors(const struct attempt *a)
{
	struct rlimit l;
	(void)getrlimit(RLIMIT_NOFILE, &l);
	l.rlim_cur = l.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &l);
	int fd = 0;
	for (int i = 0; i < 10000 && fd >= 0; i++)
		fd = dup(0);
	return answer_of(fd, a);
}

static enum answer queue_bytes(const struct attempt *a)
{
	struct rlimit l;
	(void)a;
	return getrlimit(RLIMIT_MSGQUEUE, &l) == 0 && l.rlim_max == 0 ? STOPPED : THROUGH;
}

#define FILL(dir)                                                                                  \
	{                                                                                          \
		.id = "R3", .what = "fill " dir, .fn = fill_bytes, .without = "sizes",             \
		.want = ENOSPC, .path = dir                                                        \
	}
#define FILL_INODES(dir)                                                                           \
	{                                                                                          \
		.id = "R4", .what = "fill the inodes of " dir, .fn = fill_inodes,                  \
		.without = "sizes", .want = ENOSPC, .path = dir                                    \
	}

/* Tables are read by column. */
/* clang-format off */
static const struct attempt rows[] = {
	FILL("/tmp"),
	FILL("/dev/shm"),
	FILL("/run"),
	FILL("/home/agent"),
	FILL("/workspace"),
	FILL_INODES("/tmp"),
	FILL_INODES("/dev/shm"),
	FILL_INODES("/run"),
	FILL_INODES("/home/agent"),
	FILL_INODES("/workspace"),
	{ .id = "R4", .what = "a file of 100 TiB", .fn = huge_file, .without = "rlimits",
		.want = EFBIG },
	{ .id = "R22", .what = "a long list of access rights", .fn = long_list,
		.without = "filter", .want = EOPNOTSUPP },
	{ .id = "R8", .what = "pin memory", .fn = pin_memory, .without = "rlimits,privilege",
		.want = ENOMEM, .also = EPERM },
	{ .id = "R9", .what = "areas of memory", .fn = map_areas, .want = ENOMEM,
		.uncontrolled = "their number ends by vm.max_map_count everywhere" },
	{ .id = "R17", .what = "queued signals and timers", .fn = take_signals,
		.without = "rlimits", .want = EAGAIN },
	{ .id = "R17", .what = "terminals", .fn = take_terminals, .without = "root",
		.want = ENOSPC },
	{ .id = "R17", .what = "descriptors", .fn = take_descriptors, .without = "rlimits",
		.want = EMFILE },
	{ .id = "R18", .what = "bytes for message queues", .fn = queue_bytes,
		.without = "rlimits" },
	{ .id = "R18", .what = "mq_open", .fn = attempt_call, .without = "filter", .want = ENOSYS,
		.nr = SYS_mq_open },
};
/* clang-format on */
ATTEMPTS_MAIN(rows)
