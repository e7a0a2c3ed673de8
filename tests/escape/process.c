/* PID 1, other ids, privileges that were given up. */
#include "escape.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <linux/capability.h>

static void pid1(void)
{
	ok(access("/proc/1", F_OK) < 0, "PID 1 is not to be seen");
	FAILS(kill(1, 0), EPERM, "signal PID 1");
	FAILS(kill(1, SIGSTOP), EPERM, "stop PID 1");
	FAILS(syscall(SYS_tgkill, 1, 1, SIGKILL), EPERM, "tgkill PID 1");
	/* what is there already, so that nothing changes where it goes through */
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	(void)sched_getaffinity(0, sizeof(cpus), &cpus);
	FAILS2(sched_setaffinity(1, sizeof(cpus), &cpus), EPERM, ESRCH, "pin PID 1");
	FAILS2(setpriority(PRIO_PROCESS, 1, getpriority(PRIO_PROCESS, 0)), EPERM, EACCES,
	        "change PID 1's priority");
	uint64_t nofile[2] = {1024, 1024};
	(void)syscall(SYS_prlimit64, 1, RLIMIT_NOFILE, NULL, nofile);
	FAILS(syscall(SYS_prlimit64, 1, RLIMIT_NOFILE, nofile, NULL), EPERM,
	        "limit PID 1's descriptors");
	int pidfd = (int)syscall(434, 1, 0);
	FAILS2(syscall(424, pidfd, 0, NULL, 0), EPERM, EBADF, "signal PID 1 by pidfd");
}

static void privileges(void)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {{0}}, all[2] = {{~0u, ~0u, ~0u}, {511, 511, 511}};
	ok(syscall(SYS_capget, &h, d) == 0 &&
	                !(d[0].effective | d[1].effective | d[0].permitted | d[1].permitted |
	                        d[0].inheritable | d[1].inheritable),
	        "no capability is left");
	FAILS(syscall(SYS_capset, &h, all), EPERM, "capset");
	int bounding = 0;
	for (int cap = 0; cap < 64; cap++)
		bounding += prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1;
	ok(bounding == 0, "the bounding set is empty");
	FAILS(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0), EPERM,
	        "ambient capability");
	FAILS(prctl(PR_SET_SECUREBITS, 0, 0, 0, 0), EPERM, "unlock securebits");
	ok(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1, "no_new_privs is set");
	FAILS(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), EINVAL, "unset no_new_privs");
	ok(prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2, "a filter is in force");
	FAILS(setuid(65533), EPERM, "become PID 1's user");
	FAILS(setuid(getuid() ? 0 : 1000), EPERM, "become another user");
	FAILS2(setgid(5), EPERM, EPERM, "join the group of terminals");
	gid_t group = 0;
	FAILS(syscall(SYS_setgroups, 1, &group), EPERM, "setgroups");
}

static void limits(void)
{
	struct sched_param fifo = {.sched_priority = 10};
	FAILS(syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &fifo), EPERM, "real-time scheduling");
	FAILS2(setpriority(PRIO_PROCESS, 0, -20), EACCES, EPERM, "nice -20");
	struct rlimit l;
	ok(getrlimit(RLIMIT_CORE, &l) == 0 && l.rlim_max <= 1, "no core dump leaves the jail");
	struct rlimit wide = {1 << 20, 1 << 20};
	FAILS(setrlimit(RLIMIT_NOFILE, &wide), EPERM, "raise RLIMIT_NOFILE");
	FAILS2(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC), EROFS, EACCES,
	        "hide from the oom killer");
}

int main(void)
{
	pid1();
	privileges();
	limits();
	return done();
}
