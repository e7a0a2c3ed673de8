/*
 * parallel.c - many at once: eight clients, each one jail after the other, from
 * request to the end of the jail, against eight loops of bubblewrap.
 *
 * The two take turns; printed are jails a second and the ratio of the medians.
 * Environment: BIN, ROUNDS (turns, default 5).
 */
#include "bench/rig.h"

enum { CLIENTS = 8, EACH = 25, ROUNDS_MAX = 100, SETTLE_MS = 500 };

static void agentbox_loop(const struct rig *g)
{
	for (int i = 0; i < EACH; i++)
		(void)rig_jail(g);
}

static void bwrap_loop(const struct rig *g)
{
	static const char *const argv[] = {"bwrap", "--unshare-all", "--die-with-parent",
	        "--new-session", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
	        "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc",
	        "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "/bin/sh", "-c", "echo hi", NULL};
	posix_spawn_file_actions_t fa;
	(void)g;
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
	for (int i = 0; i < EACH; i++)
		if (rig_wait(rig_spawn(argv, &fa)) != 0)
			die("bwrap");
	posix_spawn_file_actions_destroy(&fa);
}

/* Jails a second, times 1000. */
static int64_t at_once(const struct rig *g, void (*loop)(const struct rig *))
{
	pid_t pids[CLIENTS];
	int64_t t0 = clock_mono_us();
	for (int i = 0; i < CLIENTS; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("fork");
		if (pids[i] == 0) {
			loop(g);
			_exit(0);
		}
	}
	for (int i = 0; i < CLIENTS; i++)
		if (rig_wait(pids[i]) != 0)
			die("a client");
	return (int64_t)CLIENTS * EACH * 1000000000 / (clock_mono_us() - t0);
}

int main(void)
{
	static int64_t ours[ROUNDS_MAX], theirs[ROUNDS_MAX];
	int rounds = rig_rounds(5, ROUNDS_MAX);
	struct rig g;
	rig_start(&g, NULL, NULL, "");
	for (int r = 0; r < rounds; r++) {
		ours[r] = at_once(&g, agentbox_loop);
		poll(NULL, 0, SETTLE_MS);
		theirs[r] = at_once(&g, bwrap_loop);
		poll(NULL, 0, SETTLE_MS);
	}
	rig_stop(&g);
	double a = percentile(ours, rounds, 50), b = percentile(theirs, rounds, 50);
	printf("parallel_jails\t%.0f\tjails/s\nparallel_bwrap\t%.0f\tjails/s\n", a / 1000,
	        b / 1000);
	printf("parallel_vs_bwrap\t%.2f\tx\n", a / b);
	return 0;
}
