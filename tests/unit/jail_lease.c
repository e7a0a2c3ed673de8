#include "jail/lease.h"
#include "base/fd.h"
#include "tests/t.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char path[] = "/tmp/agentbox-lease-XXXXXX";

static void test_all(void)
{
	struct leases l;
	must(leases_open(&l, path, NULL) == 0, "opens");
	static uint8_t seen[ID_LEASES + 1];
	unsigned bad = 0, taken = 0;
	uint32_t base, last = 0;
	struct err e = {0};
	int r;
	for (; taken <= ID_LEASES && (r = lease_take(&l, &base, &e)) == 0; taken++) {
		uint32_t block = (base - ID_STORE_BASE) / ID_BLOCK;
		bad += base <= ID_STORE_BASE || block > ID_LEASES || base % ID_BLOCK != 0 ||
		       seen[block]++;
		last = base;
	}
	/* Blocks of jails that run beside this test are left out; there are not many. */
	ok(bad == 0 && taken <= ID_LEASES && taken > ID_LEASES - 256,
	        "%u different blocks, none with id 0 or the store's ids", taken);
	ok(r == -EAGAIN, "then no more: %s", e.text);
	lease_drop(&l, last);
	ok(lease_take(&l, &base, NULL) == 0 &&
	                (base == last || !seen[(base - ID_STORE_BASE) / ID_BLOCK]),
	        "one given back can be had again");
	leases_close(&l);
}

static void test_reuse_is_late(void)
{
	struct leases l;
	must(leases_open(&l, path, NULL) == 0, "opens");
	uint32_t a, b;
	bool again = false;
	must(lease_take(&l, &a, NULL) == 0, "takes");
	lease_drop(&l, a);
	for (int i = 0; i < 100; i++) {
		must(lease_take(&l, &b, NULL) == 0, "takes");
		again |= a == b;
		lease_drop(&l, b);
	}
	ok(!again, "a block is not handed out again at once");
	leases_close(&l);
}

/* Two daemons: two open files of one table. */
static void test_exclusive(void)
{
	struct leases x, y;
	must(leases_open(&x, path, NULL) == 0 && leases_open(&y, path, NULL) == 0, "two daemons");
	x.next = y.next = 17;
	uint32_t a, b;
	must(lease_take(&x, &a, NULL) == 0 && lease_take(&y, &b, NULL) == 0, "both take");
	ok(a != b, "never the same block");
	leases_close(&x);
	y.next = 17;
	uint32_t c;
	ok(lease_take(&y, &c, NULL) == 0 && c == a, "what a dead daemon held is free");
	leases_close(&y);
}

/* A process of a leased id that outlived its daemon. */
static void test_in_use(void)
{
	if (geteuid() != 0) {
		skip_one("processes of a block", "needs root");
		return;
	}
	struct leases l;
	must(leases_open(&l, path, NULL) == 0, "opens");
	uint32_t base = ID_STORE_BASE + 4000u * ID_BLOCK, got;
	int ready[2];
	must(pipe2(ready, O_CLOEXEC) == 0, "pipe");
	pid_t pid = fork();
	if (pid == 0) {
		if (setresuid(base + ID_INNER_AGENT, base + ID_INNER_AGENT, base + ID_INNER_AGENT))
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)!write(ready[1], "x", 1);
		pause();
		_exit(0);
	}
	char x;
	must(read(ready[0], &x, 1) == 1, "a process runs as an id of block 4000");
	l.next = 4000;
	ok(lease_take(&l, &got, NULL) == 0 && got != base, "its block is passed over");
	lease_drop(&l, got);
	kill(pid, 9);
	waitpid(pid, NULL, 0);
	l.next = 4000;
	ok(lease_take(&l, &got, NULL) == 0 && got == base, "until it is gone");
	leases_close(&l);
	fd_close(ready[0]);
	fd_close(ready[1]);
}

static void test_file(void)
{
	struct leases l;
	struct err e = {0};
	char link_path[64];
	snprintf(link_path, sizeof(link_path), "%s.link", path);
	must(symlink(path, link_path) == 0, "a link");
	ok(leases_open(&l, link_path, &e) < 0, "is not followed: %s", e.text);
	unlink(link_path);
	chmod(path, 0666);
	ok(leases_open(&l, path, &e) == -EPERM, "others may write: %s", e.text);
	chmod(path, 0600);
	char dir[64], below[80];
	snprintf(dir, sizeof(dir), "%s.dir", path);
	snprintf(below, sizeof(below), "%s/leases", dir);
	mode_t old = umask(0077);
	ok(leases_open(&l, below, &e) == 0, "its directory is made: %s", e.text);
	(void)umask(old);
	struct stat st;
	ok(stat(dir, &st) == 0 && (st.st_mode & 07777) == 0755, "and let through, as the socket's");
	leases_close(&l);
	unlink(below);
	rmdir(dir);
}

int main(void)
{
	fd_close(mkstemp(path));
	test_all();
	test_reuse_is_late();
	test_exclusive();
	test_in_use();
	test_file();
	unlink(path);
	return done();
}
