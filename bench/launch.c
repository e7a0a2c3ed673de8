/*
 * launch.c - what a jail costs: request on the socket -> first byte of
 * `sh -c 'echo hi'`, against two peers in the same run.
 *
 *	floor		posix_spawn of the same command, no jail at all
 *	bwrap		bubblewrap with all its namespaces and our own filter (--seccomp)
 *
 * One round launches each once, in an order that turns from round to round, so
 * that what else the machine does hits all alike.  Printed are ratios of the
 * medians; the microseconds are for orientation only.
 *
 * Environment: BIN (directory of the programs), ROUNDS (default 200).
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "policy/policy.h"
#include "proto/stdio.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { VARIANTS = 3, WARMUP = 10, ROUNDS_MAX = 5000 };

struct bench {
	char dir[64], socket[96];
	char *bin;  /* owned */
	int filter; /* fd with the bytes of the default policy's filter */
	pid_t daemon;
};

static void die(const char *what)
{
	fprintf(stderr, "bench launch: %s: %s\n", what, strerror(errno));
	exit(111);
}

/* ---- the peers ---- */

static int64_t spawn_first_byte(char *const argv[], int keep_fd)
{
	int p[2];
	if (pipe2(p, O_CLOEXEC) < 0)
		die("pipe");
	posix_spawn_file_actions_t fa;
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, p[1], 1);
	if (keep_fd >= 0) {
		lseek(keep_fd, 0, SEEK_SET);
		posix_spawn_file_actions_adddup2(&fa, keep_fd, 9);
	}
	int64_t t0 = clock_mono_us();
	pid_t pid;
	if (posix_spawnp(&pid, argv[0], &fa, NULL, argv, environ) != 0)
		die(argv[0]);
	close(p[1]);
	char b[64];
	ssize_t n = read(p[0], b, sizeof(b));
	int64_t took = clock_mono_us() - t0;
	if (n < 2 || b[0] != 'h')
		die("no output from the peer");
	close(p[0]);
	posix_spawn_file_actions_destroy(&fa);
	waitpid(pid, NULL, 0);
	return took;
}

static int64_t floor_once(struct bench *b)
{
	(void)b;
	char *argv[] = {"/bin/sh", "-c", "echo hi", NULL};
	return spawn_first_byte(argv, -1);
}

static int64_t bwrap_once(struct bench *b)
{
	char *argv[] = {"bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind",
	        "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib",
	        "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs",
	        "/tmp", "--seccomp", "9", "/bin/sh", "-c", "echo hi", NULL};
	return spawn_first_byte(argv, b->filter);
}

/* ---- agentbox: one request on the control socket ---- */

static int connect_socket(const char *path)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	str_copy(a.sun_path, sizeof(a.sun_path), path);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	fd_close(fd);
	return -1;
}

/* Reads until `have` bytes; what is there already stays. */
static void read_to(int fd, char *buf, size_t *len, size_t have)
{
	while (*len < have) {
		ssize_t n = read(fd, buf + *len, have - *len);
		if (n <= 0)
			die("connection to agentboxd");
		*len += (size_t)n;
	}
}

static void read_response_head(int fd)
{
	char head[4096];
	size_t len = 0;
	while (len < 4 || memcmp(head + len - 4, "\r\n\r\n", 4) != 0) {
		if (len + 1 >= sizeof(head))
			die("response head");
		read_to(fd, head, &len, len + 1);
	}
	head[len] = '\0';
	if (strncmp(head, "HTTP/1.1 101", 12) != 0) {
		fprintf(stderr, "%s\n", head);
		die("the request was refused");
	}
}

static int64_t agentbox_once(struct bench *b)
{
	static const char body[] = "{\"argv\":[\"/bin/sh\",\"-c\",\"echo hi\"]}";
	auto_free char *request = xasprintf("POST /v1/jails HTTP/1.1\r\nHost: agentbox\r\n"
	                                    "Connection: Upgrade\r\nUpgrade: " STDIO_UPGRADE
	                                    "\r\nContent-Type: application/json\r\n"
	                                    "Content-Length: %zu\r\n\r\n%s",
	        sizeof(body) - 1, body);
	int64_t t0 = clock_mono_us(), took = -1;
	auto_close int fd = connect_socket(b->socket);
	if (fd < 0 || fd_write_all(fd, request, strlen(request)) < 0)
		die("request");
	read_response_head(fd);
	for (;;) {
		uint8_t head[STDIO_HEAD];
		size_t len = 0;
		read_to(fd, (char *)head, &len, sizeof(head));
		size_t n = stdio_length(head);
		char payload[STDIO_FRAME_MAX];
		if (n > sizeof(payload))
			die("frame");
		len = 0;
		read_to(fd, payload, &len, n);
		if (head[0] == STDIO_STDOUT && took < 0)
			took = clock_mono_us() - t0;
		if (head[0] == STDIO_EXIT)
			break;
	}
	if (took < 0)
		die("no output from the jail");
	return took;
}

/* ---- setting up ---- */

static int compile_filter(struct bench *b)
{
	auto_free char *cmd = xasprintf("%s/agentbox-policyc", b->bin);
	int set_fd = memfd_create("set", 0);
	if (set_fd < 0)
		die("memfd");
	auto_free char *out = xasprintf("%d", set_fd);
	char *argv[] = {cmd, "compile", "--out", out, NULL};
	pid_t pid;
	int st = 1;
	if (posix_spawn(&pid, cmd, NULL, NULL, argv, environ) != 0 || waitpid(pid, &st, 0) < 0 ||
	        st)
		die("agentbox-policyc compile");
	lseek(set_fd, 0, SEEK_SET);
	char *bytes;
	size_t n;
	struct err e;
	if (fd_slurp(set_fd, 64 << 20, &bytes, &n) < 0 || policy_set_check(bytes, n, &e) < 0)
		die("compiled policy");
	close(set_fd);
	const struct policy_set *s = (const struct policy_set *)(const void *)bytes;
	int i = policy_find(s, "default"), fd = memfd_create("filter", 0);
	if (i < 0 || fd < 0 ||
	        fd_write_all(fd, s->policies[i].bpf,
	                s->policies[i].ninsns * sizeof(struct sock_filter)) < 0)
		die("filter");
	free(bytes);
	return fd;
}

static void start_daemon(struct bench *b)
{
	str_copy(b->dir, sizeof(b->dir), "/tmp/agentbox-bench.XXXXXX");
	if (!mkdtemp(b->dir))
		die("temporary directory");
	snprintf(b->socket, sizeof(b->socket), "%s/sock", b->dir);
	auto_free char *cmd = xasprintf("%s/agentboxd", b->bin);
	auto_free char *state = xasprintf("%s/state", b->dir);
	char *argv[] = {cmd, "--state", state, "--socket", b->socket, "--log-level", "warn", NULL};
	if (posix_spawn(&b->daemon, cmd, NULL, NULL, argv, environ) != 0)
		die(cmd);
	for (int i = 0; i < 1000; i++) {
		int fd = connect_socket(b->socket);
		fd_close(fd);
		if (fd >= 0)
			return;
		poll(NULL, 0, 10);
	}
	die("agentboxd does not answer");
}

static void stop_daemon(struct bench *b)
{
	kill(b->daemon, SIGTERM);
	waitpid(b->daemon, NULL, 0);
	char *argv[] = {"rm", "-rf", b->dir, NULL};
	pid_t pid;
	if (posix_spawnp(&pid, "rm", NULL, NULL, argv, environ) == 0)
		waitpid(pid, NULL, 0);
}

static int compare(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
	return a < b ? -1 : a > b;
}

static double percentile(int64_t *v, int n, int p)
{
	qsort(v, (size_t)n, sizeof(*v), compare);
	return (double)v[(n - 1) * p / 100];
}

int main(void)
{
	static int64_t took[VARIANTS][ROUNDS_MAX];
	static int64_t (*const run[VARIANTS])(struct bench *) = {
	        floor_once, bwrap_once, agentbox_once};
	static const char *const names[VARIANTS] = {"floor", "bwrap_seccomp", "cold"};
	if (geteuid() != 0) {
		fprintf(stderr, "bench launch: needs root (it starts agentboxd)\n");
		return 111;
	}
	const char *bin = getenv("BIN"), *rounds_text = getenv("ROUNDS");
	long rounds = rounds_text ? strtol(rounds_text, NULL, 10) : 200;
	if (rounds < 1 || rounds > ROUNDS_MAX)
		rounds = 200;
	struct bench b = {.bin = xstrdup(bin ? bin : "build/release/bin")};
	signal(SIGPIPE, SIG_IGN);
	b.filter = compile_filter(&b);
	start_daemon(&b);
	for (long r = -WARMUP; r < rounds; r++)
		for (int k = 0; k < VARIANTS; k++) {
			int i = (int)((k + r + WARMUP) % VARIANTS);
			int64_t us = run[i](&b);
			if (r >= 0)
				took[i][r] = us;
			poll(NULL, 0,
			        2); /* the pool is refilled between launches, as between requests */
		}
	stop_daemon(&b);
	double p50[VARIANTS];
	for (int i = 0; i < VARIANTS; i++) {
		p50[i] = percentile(took[i], (int)rounds, 50);
		printf("launch_%s_p50\t%.0f\tus\n", names[i], p50[i]);
		printf("launch_%s_p99\t%.0f\tus\n", names[i], percentile(took[i], (int)rounds, 99));
	}
	printf("cold_vs_floor\t%.2f\tx\ncold_vs_bwrap_seccomp\t%.2f\tx\n", p50[2] / p50[0],
	        p50[2] / p50[1]);
	free(b.bin);
	return 0;
}
