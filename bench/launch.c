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
#include "base/err.h"
#include "bench/rig.h"
#include "policy/policy.h"

#include <sys/mman.h>

/* GAP_MS: for what one launch leaves to be done (the pool's refill, the end of a network
 * namespace), so that none is measured under the work of the one before. */
enum { VARIANTS = 3, WARMUP = 10, ROUNDS_MAX = 5000, GAP_MS = 12 };

struct bench {
	struct rig rig;
	int filter; /* fd with the bytes of the default policy's filter */
};

/* ---- the peers ---- */

static int64_t spawn_first_byte(const char *const argv[], int keep_fd)
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
	pid_t pid = rig_spawn(argv, &fa);
	close(p[1]);
	char b[64];
	ssize_t n = read(p[0], b, sizeof(b));
	int64_t took = clock_mono_us() - t0;
	if (n < 2 || b[0] != 'h')
		die("no output from the peer");
	close(p[0]);
	posix_spawn_file_actions_destroy(&fa);
	(void)rig_wait(pid);
	return took;
}

static int64_t floor_once(struct bench *b)
{
	static const char *const argv[] = {"/bin/sh", "-c", "echo hi", NULL};
	(void)b;
	return spawn_first_byte(argv, -1);
}

static int64_t bwrap_once(struct bench *b)
{
	static const char *const argv[] = {"bwrap", "--unshare-all", "--die-with-parent",
	        "--new-session", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
	        "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc",
	        "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--seccomp", "9", "/bin/sh", "-c",
	        "echo hi", NULL};
	return spawn_first_byte(argv, b->filter);
}

static int64_t agentbox_once(struct bench *b)
{
	return rig_jail(&b->rig);
}

/* ---- setting up ---- */

static int compile_filter(struct bench *b)
{
	auto_free char *cmd = xasprintf("%s/agentbox-policyc", b->rig.bin);
	auto_close int set_fd = memfd_create("set", 0);
	if (set_fd < 0)
		die("memfd");
	auto_free char *out = xasprintf("%d", set_fd);
	const char *argv[] = {cmd, "compile", "--out", out, NULL};
	if (rig_wait(rig_spawn(argv, NULL)) != 0)
		die("agentbox-policyc compile");
	lseek(set_fd, 0, SEEK_SET);
	auto_free char *bytes = NULL;
	size_t n;
	struct err e;
	if (fd_slurp(set_fd, 64 << 20, &bytes, &n) < 0 || policy_set_check(bytes, n, &e) < 0)
		die("compiled policy");
	const struct policy_set *s = (const struct policy_set *)(const void *)bytes;
	int i = policy_find(s, "default"), fd = memfd_create("filter", 0);
	if (i < 0 || fd < 0 ||
	        fd_write_all(fd, s->policies[i].bpf,
	                s->policies[i].ninsns * sizeof(struct sock_filter)) < 0)
		die("filter");
	return fd;
}

int main(void)
{
	static int64_t took[VARIANTS][ROUNDS_MAX];
	static int64_t (*const run[VARIANTS])(struct bench *) = {
	        floor_once, bwrap_once, agentbox_once};
	static const char *const names[VARIANTS] = {"floor", "bwrap_seccomp", "cold"};
	int rounds = rig_rounds(200, ROUNDS_MAX);
	struct bench b;
	rig_start(&b.rig, NULL, NULL, "");
	b.filter = compile_filter(&b);
	for (int r = -WARMUP; r < rounds; r++)
		for (int k = 0; k < VARIANTS; k++) {
			int i = (k + r + WARMUP) % VARIANTS;
			int64_t us = run[i](&b);
			if (r >= 0)
				took[i][r] = us;
			poll(NULL, 0, GAP_MS);
		}
	rig_stop(&b.rig);
	double p50[VARIANTS];
	for (int i = 0; i < VARIANTS; i++) {
		p50[i] = percentile(took[i], rounds, 50);
		printf("launch_%s_p50\t%.0f\tus\n", names[i], p50[i]);
		printf("launch_%s_p99\t%.0f\tus\n", names[i], percentile(took[i], rounds, 99));
	}
	printf("cold_vs_floor\t%.2f\tx\ncold_vs_bwrap_seccomp\t%.2f\tx\n", p50[2] / p50[0],
	        p50[2] / p50[1]);
	return 0;
}
