/*
 * rig.h - what the benches share: a daemon of their own, requests to it, peers
 * to compare with, and medians.
 *
 * Every failure ends the bench with 111: a number that was measured on half a
 * system would be worse than none.  Environment: BIN (directory of the programs).
 */
#ifndef BENCH_RIG_H
#define BENCH_RIG_H

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "proto/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct rig {
	char dir[64], socket[96];
	char *bin; /* owned */
	pid_t daemon;
};

static inline _Noreturn void die(const char *what)
{
	fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
	exit(111);
}

/* How often, from the environment. */
static inline int rig_rounds(int dflt, int max)
{
	const char *text = getenv("ROUNDS");
	long n = text ? strtol(text, NULL, 10) : dflt;
	return n < 1 || n > max ? dflt : (int)n;
}

/* ---- processes ---- */

static inline pid_t rig_spawn(const char *const argv[], posix_spawn_file_actions_t *fa)
{
	pid_t pid;
	errno = posix_spawnp(&pid, argv[0], fa, NULL, (char *const *)(const void *)argv, environ);
	if (errno)
		die(argv[0]);
	return pid;
}

static inline int rig_wait(pid_t pid)
{
	int status = 0;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("waitpid");
	return status;
}

/* ---- the daemon ---- */

/* The one that runs, and who started it: a bench that dies leaves nothing behind either. */
static struct rig *rig_live;
static pid_t rig_owner;

static inline void rig_stop(struct rig *g)
{
	rig_live = NULL;
	kill(g->daemon, SIGTERM);
	(void)rig_wait(g->daemon);
	const char *argv[] = {"rm", "-rf", g->dir, NULL};
	(void)rig_wait(rig_spawn(argv, NULL));
	free(g->bin);
}

static inline void rig_at_exit(void)
{
	if (rig_live && getpid() == rig_owner)
		rig_stop(rig_live);
}

static inline int rig_connect(const struct rig *g)
{
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	(void)str_copy(a.sun_path, sizeof(a.sun_path), g->socket);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return take_fd(fd);
	return -1;
}

static inline void rig_write(const char *path, const char *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0)
		die(path);
}

/* A temporary directory, and where everything is. */
static inline void rig_dir(struct rig *g)
{
	if (geteuid() != 0) {
		fprintf(stderr, "bench: needs root (it starts daemons)\n");
		exit(111);
	}
	(void)signal(SIGPIPE, SIG_IGN);
	const char *bin = getenv("BIN");
	g->bin = xstrdup(bin ? bin : "build/release/bin");
	(void)str_copy(g->dir, sizeof(g->dir), "/tmp/agentbox-bench.XXXXXX");
	if (!mkdtemp(g->dir))
		die("temporary directory");
	snprintf(g->socket, sizeof(g->socket), "%s/sock", g->dir);
}

/* What is stopped at the end, however that comes. */
static inline void rig_own(struct rig *g, pid_t daemon)
{
	g->daemon = daemon;
	rig_live = g;
	rig_owner = getpid();
	if (atexit(rig_at_exit) != 0)
		die("atexit");
}

/* `harness` and `policy` (or NULL) are offered under the name "bench"; `config` is agentboxd.yaml.
 */
static inline void rig_start(
        struct rig *g, const char *harness, const char *policy, const char *config)
{
	rig_dir(g);
	auto_free char *harnesses = xasprintf("%s/harnesses", g->dir);
	auto_free char *file = xasprintf("%s/bench.md", harnesses);
	auto_free char *policies = xasprintf("%s/policy", g->dir);
	auto_free char *rules = xasprintf("%s/bench.yaml", policies);
	auto_free char *yaml = xasprintf("%s/agentboxd.yaml", g->dir);
	auto_free char *cmd = xasprintf("%s/agentboxd", g->bin);
	auto_free char *state = xasprintf("%s/state", g->dir);
	if (mkdir(harnesses, 0755) < 0 || mkdir(policies, 0755) < 0 || chmod(g->dir, 0755) < 0)
		die(g->dir);
	if (harness)
		rig_write(file, harness);
	if (policy)
		rig_write(rules, policy);
	rig_write(yaml, config);
	const char *argv[] = {cmd, "--config", yaml, "--state", state, "--socket", g->socket,
	        "--log-level", "err", NULL};
	rig_own(g, rig_spawn(argv, NULL));
	for (int i = 0; i < 3000; i++) {
		int fd = rig_connect(g);
		fd_close(fd);
		if (fd >= 0)
			return;
		poll(NULL, 0, 10);
	}
	die("agentboxd does not answer");
}

/* ---- one request ---- */

/* The longest frame or line: run.done carries the final text. */
enum { ANSWER_MAX = 8 << 20 };

/* What has come, from `at` on; NUL after it. */
struct answer {
	int fd;
	size_t at, len;
	char buf[ANSWER_MAX];
};

/* More bytes; false at the end. */
static inline bool answer_more(struct answer *a)
{
	if (a->at > 0) {
		memmove(a->buf, a->buf + a->at, a->len - a->at);
		a->len -= a->at;
		a->at = 0;
	}
	if (a->len + 1 >= sizeof(a->buf))
		die("answer too long");
	ssize_t got = read(a->fd, a->buf + a->len, sizeof(a->buf) - 1 - a->len);
	if (got < 0)
		die("connection to agentboxd");
	a->len += (size_t)got;
	a->buf[a->len] = '\0';
	return got > 0;
}

static inline const char *answer_need(struct answer *a, size_t n)
{
	while (a->len - a->at < n)
		if (!answer_more(a))
			die("connection to agentboxd ended");
	return a->buf + a->at;
}

/* Sends `request` and takes the head of the answer, which must begin with `want`. */
static inline void answer_open(
        struct answer *a, const struct rig *g, const char *request, const char *want)
{
	a->at = a->len = 0;
	a->fd = rig_connect(g);
	if (a->fd < 0 || fd_write_all(a->fd, request, strlen(request)) < 0)
		die("request");
	const char *end = NULL;
	for (size_t n = 1; !end; n = a->len + 1)
		end = strstr(answer_need(a, n), "\r\n\r\n");
	if (strncmp(a->buf, want, strlen(want)) != 0) {
		fprintf(stderr, "%s\n", a->buf);
		die("the request was refused");
	}
	a->at = (size_t)(end + 4 - a->buf);
}

/* `sh -c 'echo hi'` in a fresh jail: microseconds to its first byte; returns after its end. */
static inline int64_t rig_jail(const struct rig *g)
{
	static const char request[] =
	        "POST /v1/jails HTTP/1.1\r\nHost: agentbox\r\nConnection: Upgrade\r\n"
	        "Upgrade: " STDIO_UPGRADE "\r\nContent-Type: application/json\r\n"
	        "Content-Length: 38\r\n\r\n{\"argv\":[\"/bin/sh\",\"-c\",\"echo hi\"]}   ";
	static struct answer a;
	int64_t t0 = clock_mono_us(), took = -1;
	answer_open(&a, g, request, "HTTP/1.1 101");
	for (uint8_t stream = STDIO_NOTICE; stream != STDIO_EXIT;) {
		uint8_t head[STDIO_HEAD];
		memcpy(head, answer_need(&a, sizeof(head)), sizeof(head));
		(void)answer_need(&a, sizeof(head) + stdio_length(head));
		a.at += sizeof(head) + stdio_length(head);
		stream = head[0];
		if (stream == STDIO_STDOUT && took < 0)
			took = clock_mono_us() - t0;
	}
	fd_close(a.fd);
	if (took < 0)
		die("no output from the jail");
	return took;
}

/* ---- numbers ---- */

static inline int rig_compare(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
	return a < b ? -1 : a > b;
}

static inline double percentile(int64_t *v, int n, int p)
{
	qsort(v, (size_t)n, sizeof(*v), rig_compare);
	return (double)v[(n - 1) * p / 100];
}

#endif
