/*
 * noise.c - an agent that takes all it gets of one thing, for ever.
 *
 *	noise forks|sessions|fds|disk|inodes|shm|output|lines|memory|spin
 *
 * Says "ready" when it has met its limit for the first time (what has none: at once).
 */
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BLOCK = 64 << 10, SPINNERS = 64, PROCESSES = 16 };

static void ready(void)
{
	static bool said;
	if (!said)
		(void)!write(1, "ready\n", 6);
	said = true;
}

/* ---- processes ---- */

static _Noreturn void bomb(bool alone)
{
	bool first = true;
	for (;;) {
		pid_t pid = fork();
		if (pid == 0) {
			first = false;
			if (alone)
				(void)setsid();
		} else if (pid < 0 && first) {
			ready();
		}
	}
}

static _Noreturn void forks(void)
{
	bomb(false);
}

/* Each a session of its own, which some schedulers take for a user of their own. */
static _Noreturn void sessions(void)
{
	bomb(true);
}

static _Noreturn void spin(void)
{
	for (int i = 1; i < SPINNERS; i++)
		if (fork() == 0)
			break;
		else if (i == SPINNERS - 1)
			ready();
	for (volatile unsigned i = 0;; i++)
		;
}

/* ---- descriptors: files, full pipes, and descriptors on their way through sockets ---- */

static bool take_one(unsigned n)
{
	static char bytes[BLOCK];
	int p[2];
	if (n % 3 == 0)
		return open("/tmp/fd", O_RDWR | O_CREAT | O_CLOEXEC, 0600) >= 0;
	if (n % 3 == 1) {
		if (pipe2(p, O_NONBLOCK | O_CLOEXEC) < 0)
			return false;
		(void)fcntl(p[1], F_SETPIPE_SZ, 1 << 20);
		(void)!write(p[1], bytes, sizeof(bytes));
		return true;
	}
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p) == 0;
}

static _Noreturn void fds(void)
{
	bool first = true;
	for (int i = 1; i < PROCESSES && first; i++)
		first = fork() > 0;
	for (;;) {
		for (unsigned n = 0; take_one(n); n++)
			;
		if (first)
			ready();
		(void)close_range(3, ~0U, 0);
	}
}

/* ---- room ---- */

static _Noreturn void fill(const char *dir, size_t size)
{
	static char bytes[BLOCK];
	char path[256];
	for (;;) {
		unsigned n = 0;
		for (bool room = true; room; n++) {
			(void)snprintf(path, sizeof(path), "%s/%u", dir, n);
			int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
			room = fd >= 0;
			for (size_t at = 0; room && at < size; at += sizeof(bytes))
				room = write(fd, bytes, sizeof(bytes)) > 0;
			if (fd >= 0)
				(void)close(fd);
		}
		ready();
		while (n-- > 0) {
			(void)snprintf(path, sizeof(path), "%s/%u", dir, n);
			(void)unlink(path);
		}
	}
}

static _Noreturn void disk(void)
{
	fill("/workspace", 1 << 20);
}

static _Noreturn void inodes(void)
{
	fill("/workspace", 0);
}

static _Noreturn void shm(void)
{
	fill("/dev/shm", 1 << 20);
}

/* All of CEILING (bytes, from the environment) at once, again and again; without one all there is.
 */
static _Noreturn void memory(void)
{
	const char *text = getenv("CEILING");
	size_t most = text ? strtoull(text, NULL, 10) : (size_t)1 << 40;
	for (;;) {
		char *p = mmap(NULL, most, PROT_READ | PROT_WRITE,
		        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED)
			exit(111);
		for (size_t at = 0; at < most; at += BLOCK)
			memset(p + at, 1, BLOCK);
		ready();
		(void)munmap(p, most);
	}
}

/* ---- output ---- */

static _Noreturn void flood(const char *line)
{
	static char bytes[BLOCK];
	size_t n = strlen(line), used = sizeof(bytes) - sizeof(bytes) % n;
	for (size_t at = 0; at < used; at += n)
		memcpy(bytes + at, line, n);
	ready();
	for (;;)
		if (write(1, bytes, used) < 0 && errno != EINTR)
			(void)poll(NULL, 0, 1);
}

static _Noreturn void output(void)
{
	flood("the quick brown fox jumps over the lazy dog, and again, and so on for ever more\n");
}

static _Noreturn void lines(void)
{
	flood("\n");
}

static const struct {
	const char *name;
	void (*make)(void);
} kinds[] = {
        {"forks", forks},
        {"sessions", sessions},
        {"spin", spin},
        {"fds", fds},
        {"disk", disk},
        {"inodes", inodes},
        {"shm", shm},
        {"memory", memory},
        {"output", output},
        {"lines", lines},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < ARRAY_LEN(kinds); i++)
		if (strcmp(kinds[i].name, argv[1]) == 0)
			kinds[i].make();
	fprintf(stderr, "noise: of what?\n");
	return 100;
}
