/* Taking more than a share. */
#include "escape.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/statvfs.h>

static void sizes(void)
{
	static const char *const dirs[] = {"/tmp", "/dev/shm", "/run", "/workspace", "/home/agent"};
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		struct statvfs v;
		ok(statvfs(dirs[i], &v) == 0 && v.f_blocks > 0 && v.f_files > 0 &&
		                v.f_files < 100000000 &&
		                (uint64_t)v.f_blocks * v.f_frsize < (uint64_t)1 << 40,
		        "%s has a size and a number of inodes", dirs[i]);
	}
}

static void small_runs_full(void)
{
	static char block[1 << 16];
	int fd = open("/run/fill", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	ok(fd >= 0, "a file in the smallest file system");
	long n = 1;
	for (int i = 0; i < 1024 && n > 0; i++) /* 64 MiB at most, should it not end */
		n = write(fd, block, sizeof(block));
	ok(n < 0 && errno == ENOSPC, "it is full at its size");
	close(fd);
	unlink("/run/fill");
}

static void memory(void)
{
	size_t n = (size_t)64 << 20;
	void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ok(p != MAP_FAILED, "64 MiB of address space");
	FAILS2(mlock(p, n), ENOMEM, EPERM, "pin them");
	munmap(p, n);
}

static void files(void)
{
	/* a hole: it would cost nothing outside either, and is removed */
	int fd = open("/tmp/hole", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	signal(SIGXFSZ, SIG_IGN);
	FAILS2(ftruncate(fd, (off_t)100 << 40), EFBIG, EFBIG, "a file of 100 TiB");
	close(fd);
	unlink("/tmp/hole");
}

static void queues(void)
{
	struct rlimit l;
	ok(getrlimit(RLIMIT_MSGQUEUE, &l) == 0 && l.rlim_max == 0, "no bytes for message queues");
	ok(getrlimit(RLIMIT_SIGPENDING, &l) == 0 && l.rlim_max <= 65536,
	        "queued signals are bounded");
	ok(getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_max <= 65536, "descriptors are bounded");
	int id = shmget(0x0a9e47b0, 4096, 0);
	ok(id < 0 && errno == ENOENT, "no shared memory of anybody else");
}

int main(void)
{
	sizes();
	small_runs_full();
	memory();
	files();
	queues();
	return done();
}
