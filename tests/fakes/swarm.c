/*
 * swarm.c - an agent that does not want to go: a crowd of processes, each of them hard to end in a
 * way of its own.  Says "ready" when all are there.
 *
 *	swarm COUNT [KIND]	KIND: one of the names below; all of them in turn without it
 */
#include "base/mem.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CROWD_MAX = 1000 };

static _Noreturn void sleep_on(void)
{
	for (;;)
		pause();
}

static void block_all(void)
{
	sigset_t all;
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
}

/* ---- the ways; none returns ---- */

/* Never there when one looks: each lives for a moment, in its child. */
static void forker(void)
{
	for (;;) {
		pid_t pid = fork();
		if (pid > 0)
			_exit(0);
		if (pid < 0)
			(void)poll(NULL, 0, 1);
	}
}

static void deaf(void)
{
	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_IGN);
	block_all();
}

static void stopped(void)
{
	(void)raise(SIGSTOP);
}

/* Where the policy has no ptrace it is a stopped one. */
static void traced(void)
{
	(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	(void)raise(SIGSTOP);
}

static void daemonized(void)
{
	if (fork() > 0)
		_exit(0);
	(void)setsid();
	if (fork() > 0)
		_exit(0);
	block_all();
}

/* In the kernel most of the time: its writes wait for the disk, where no signal is looked at. */
static void in_disk(void)
{
	char name[64], block[4096] = "";
	(void)snprintf(name, sizeof(name), "/workspace/d%d", getpid());
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	block_all();
	while (fd >= 0 && pwrite(fd, block, sizeof(block), 0) > 0)
		(void)fsync(fd);
}

/* Waits in vfork for a child that does not exec. */
static void in_vfork(void)
{
	block_all();
	if (vfork() == 0) /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
		for (;;)
			pause(); /* NOLINT(clang-analyzer-unix.Vfork) */
}

static void spinner(void)
{
	block_all();
	for (volatile uint64_t i = 0;; i++)
		;
}

static const struct kind {
	const char *name;
	void (*go)(void);
} kinds[] = {
        {"forker", forker},
        {"deaf", deaf},
        {"stopped", stopped},
        {"traced", traced},
        {"daemonized", daemonized},
        {"disk", in_disk},
        {"vfork", in_vfork},
        {"spinner", spinner},
};

int main(int argc, char **argv)
{
	long count = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
	if (count < 1 || count > CROWD_MAX)
		return 100;
	(void)signal(SIGTERM, SIG_IGN);
	for (long i = 0, at = 0; i < count; at++) {
		const struct kind *k = &kinds[at % (long)ARRAY_LEN(kinds)];
		if (argc > 2 && strcmp(argv[2], k->name) != 0)
			continue;
		i++;
		pid_t pid;
		while ((pid = fork()) < 0)
			(void)poll(NULL, 0, 1); /* the forkers have taken all the room there is */
		if (pid == 0) {
			k->go();
			sleep_on();
		}
	}
	(void)!write(1, "ready\n", 6);
	sleep_on();
}
