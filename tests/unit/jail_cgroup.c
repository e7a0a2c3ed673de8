#include "tests/t.h"
#include "base/fd.h"
#include "jail/cgroup.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* A child in the cgroup; the slow way in is good enough for a test. */
static pid_t inside(const struct cgroup *c, bool stubborn)
{
	pid_t pid = fork();
	if (pid == 0) {
		auto_close int procs = openat(c->dirfd, "cgroup.procs", O_WRONLY);
		if (fd_write_all(procs, "0", 1) < 0)
			_exit(9);
		signal(SIGTERM, SIG_IGN);
		if (stubborn)
			raise(SIGSTOP);
		for (;;)
			pause();
	}
	for (int i = 0; i < 5000 && cgroup_populated(c) != 1; i++)
		usleep(1000);
	return pid;
}

static bool killed(pid_t pid)
{
	int status = 0;
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGKILL;
}

int main(void)
{
	if (geteuid() != 0)
		skip_all("cgroups take root");
	struct err e = {.code = 0};
	struct cgroup_tree t, again;
	static const struct limits limits = {
	        .memory_bytes = 64 << 20, .pids = 32, .cpu_milli = 500};
	char name[64];
	(void)snprintf(name, sizeof(name), "agentbox-test-%d", getpid());
	int r = cgroup_tree_open(name, &t, &e);
	must(r == 0, "a subtree (%s)", r < 0 ? e.text : t.path);
	struct cgroup c = CGROUP_NONE, d = CGROUP_NONE;
	must(cgroup_make(&t, "one", &limits, &c, &e) == 0, "a cgroup with limits");
	ok(cgroup_make(&t, "one", &limits, &d, &e) == -EEXIST, "its name is taken");
	static const char *const bad[] = {"", ".", "..", "a/b", "/"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(cgroup_make(&t, bad[i], &limits, &d, &e) == -EINVAL, "'%s' is no name", bad[i]);
	ok(mkdirat(c.dirfd, "nested", 0755) < 0, "nothing nests in a jail's cgroup");
	ok(cgroup_populated(&c) == 0, "it is empty");

	pid_t pid = inside(&c, true);
	ok(cgroup_populated(&c) == 1, "until somebody lives there");
	ok(cgroup_wait_empty(&c, 50) == -ETIMEDOUT, "who does not go by waiting");
	ok(cgroup_kill(&c, &e) == 0 && killed(pid), "a stopped process is killed");
	ok(cgroup_wait_empty(&c, 10000) == 0, "and it is empty again");
	pid = inside(&c, false);
	ok(cgroup_freeze(&c, true, &e) == 0 && cgroup_kill(&c, &e) == 0 && killed(pid),
	        "so is a frozen one");
	ok(cgroup_freeze(&c, false, &e) == 0, "thawed");
	struct jail_resources u;
	uint32_t ooms = 9;
	cgroup_usage(&c, &u, &ooms);
	ok(u.cpu_us > 0 && ooms == 0, "%llu us were counted", (unsigned long long)u.cpu_us);

	pid = inside(&c, true);
	must(cgroup_tree_open(name, &again, &e) == 0, "the next daemon finds the same subtree");
	ok(cgroup_tree_sweep(&again, 10000, &e) == 0 && killed(pid),
	        "its sweep kills what was left");
	ok(faccessat(again.dirfd, "one", F_OK, 0) < 0, "and removes it");
	ok(faccessat(again.dirfd, "workers", F_OK, 0) == 0, "the workers' leaf stays");
	cgroup_remove(&t, &c);
	cgroup_remove(&t, &c);
	int fds = fd_count();
	for (int i = 0; i < 50; i++) {
		must(cgroup_make(&again, "many", &limits, &d, &e) == 0, "made");
		cgroup_remove(&again, &d);
	}
	ok(fd_count() == fds, "fifty made and removed leak nothing");
	cgroup_tree_close(&t);
	cgroup_tree_close(&again);
	ok(access(again.path, F_OK) < 0, "the subtree is removed");
	return done();
}
