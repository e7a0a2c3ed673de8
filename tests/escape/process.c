/* PID 1, other ids, privileges that were given up, terminals, namespaces. */
#include "attempt.h"

#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#define TEXT(s) ((long)(uintptr_t)(s))

/* ---- P1, P2: PID 1 ---- */

static enum answer pin(const struct attempt *a)
{
	cpu_set_t cpus; /* what it has already */
	CPU_ZERO(&cpus);
	(void)sched_getaffinity(0, sizeof(cpus), &cpus);
	return answer_of(sched_setaffinity(1, sizeof(cpus), &cpus), a);
}

static enum answer reprioritize(const struct attempt *a)
{
	return answer_of(setpriority(PRIO_PROCESS, 1, getpriority(PRIO_PROCESS, 0)), a);
}

static enum answer limit_pid1(const struct attempt *a)
{
	uint64_t nofile[2] = {1024, 1024};
	(void)syscall(SYS_prlimit64, 1, RLIMIT_NOFILE, NULL, nofile);
	errno = 0;
	return answer_of(syscall(SYS_prlimit64, 1, RLIMIT_NOFILE, nofile, NULL), a);
}

static enum answer by_pidfd(const struct attempt *a)
{
	int pidfd = (int)syscall(434, 1, 0);
	errno = 0;
	return answer_of(syscall(a->nr, pidfd, a->arg[0], NULL, 0), a);
}

/* ---- P4: namespaces ---- */

static enum answer cloned(const struct attempt *a)
{
	errno = 0;
	long pid = syscall(SYS_clone, a->arg[0] | SIGCHLD, NULL, NULL, NULL, 0);
	if (pid == 0)
		_exit(0);
	enum answer answer = answer_of(pid, a);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
	return answer;
}

static enum answer enter_own(const struct attempt *a)
{
	int fd = open(a->path, O_RDONLY | O_CLOEXEC);
	errno = 0;
	return answer_of(syscall(SYS_setns, fd, 0), a);
}

static enum answer enter_pidfd(const struct attempt *a)
{
	int fd = (int)syscall(434, getpid(), 0);
	errno = 0;
	return answer_of(syscall(SYS_setns, fd, 0x00020000), a);
}

static enum answer sealed(const struct attempt *a)
{
	char digit = 0;
	int fd = open(a->path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, &digit, 1) == 1 && digit == '0' ? STOPPED : THROUGH;
}

/* ---- P5, P6: terminals ---- */

/* A terminal of the jail's own, made the controlling one: its slave side. */
static int own_terminal(int flags)
{
	int unlock = 0;
	int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	(void)ioctl(master, TIOCSPTLCK, &unlock);
	int slave = ioctl(master, TIOCGPTPEER, flags | O_NOCTTY);
	(void)setsid();
	if (slave >= 0 && flags == O_RDWR)
		(void)ioctl(slave, TIOCSCTTY, 0);
	return slave;
}

static enum answer terminal(const struct attempt *a)
{
	char byte[8] = {'x'};
	int ldisc = 0; /* N_TTY, what it has */
	int slave = own_terminal(a->arg[1] ? O_RDONLY | O_NONBLOCK : O_RDWR);
	if (slave < 0)
		return BROKEN;
	void *arg = (a->arg[0] & 0xffffffff) == TIOCSETD ? (void *)&ldisc : (void *)byte;
	errno = 0;
	return answer_of(syscall(SYS_ioctl, slave, a->arg[0], arg), a);
}

static enum answer stdin_terminal(const struct attempt *a)
{
	char byte = 'x';
	errno = 0;
	return answer_of(ioctl(0, TIOCSTI, &byte), a);
}

static enum answer starters_terminal(const struct attempt *a)
{
	errno = 0;
	return answer_of(open("/dev/tty", O_RDWR | O_CLOEXEC), a);
}

/* ---- privileges ---- */

static enum answer capabilities(const struct attempt *a)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {{0}};
	uint32_t any = 0;
	(void)a;
	if (syscall(SYS_capget, &h, d) < 0)
		return BROKEN;
	for (int i = 0; i < 2; i++)
		any |= d[i].effective | d[i].permitted | d[i].inheritable;
	for (int cap = 0; cap < 64; cap++)
		any |= prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1;
	return any ? THROUGH : STOPPED;
}

static enum answer raise_capabilities(const struct attempt *a)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {{1, 1, 1}, {0, 0, 0}}; /* CAP_CHOWN */
	return answer_of(syscall(SYS_capset, &h, d), a);
}

static enum answer ambient(const struct attempt *a)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {{0}};
	(void)syscall(SYS_capget, &h, d);
	d[0].inheritable = d[0].permitted & 1;
	(void)syscall(SYS_capset, &h, d);
	errno = 0;
	return answer_of(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0), a);
}

static enum answer can_gain(const struct attempt *a)
{
	(void)a;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 &&
	                       prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) < 0
	               ? STOPPED
	               : THROUGH;
}

static enum answer unfiltered(const struct attempt *a)
{
	(void)a;
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2 ? STOPPED : THROUGH;
}

static enum answer become(const struct attempt *a)
{
	errno = 0;
	long other = getuid() == 0 ? 1000 : 0;
	return answer_of(a->arg[0] < 0 ? setuid((uid_t)other) : setuid((uid_t)a->arg[0]), a);
}

static enum answer join_group(const struct attempt *a)
{
	gid_t group = 5;
	return answer_of(syscall(SYS_setgroups, 1, &group), a);
}

/* ---- P15, P16 ---- */

static enum answer real_time(const struct attempt *a)
{
	struct sched_param fifo = {.sched_priority = 1};
	return answer_of(syscall(SYS_sched_setscheduler, 0, a->arg[0], &fifo), a);
}

static enum answer deadline(const struct attempt *a)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} d = {48, 6, 0, 0, 0, 1 << 20, 1 << 24, 1 << 24};
	return answer_of(syscall(314, 0, &d, 0), a);
}

static enum answer nicer(const struct attempt *a)
{
	errno = 0;
	return answer_of(setpriority(PRIO_PROCESS, 0, -20), a);
}

static enum answer more_descriptors(const struct attempt *a)
{
	struct rlimit l;
	(void)getrlimit(RLIMIT_NOFILE, &l);
	l.rlim_cur = l.rlim_max = l.rlim_max + 1;
	return answer_of(setrlimit(RLIMIT_NOFILE, &l), a);
}

static enum answer dumps(const struct attempt *a)
{
	struct rlimit l;
	(void)a;
	return getrlimit(RLIMIT_CORE, &l) == 0 && l.rlim_max <= 1 ? STOPPED : THROUGH;
}

/* A filter that asks a listener which never answers: stalls its own process alone. */
static enum answer stalled(const struct attempt *a)
{
	static struct sock_filter ask[] = {
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	(void)a;
	pid_t pid = fork();
	if (pid == 0) {
		struct sock_fprog p = {4, ask};
		if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		            &p) < 0)
			_exit(1);
		(void)syscall(SYS_getppid);
		_exit(2);
	}
	struct timespec t = {0, 200000000};
	nanosleep(&t, NULL);
	int status = 0;
	if (waitpid(pid, &status, WNOHANG) == pid)
		return WEXITSTATUS(status) == 1 ? STOPPED : THROUGH;
	kill(pid, SIGKILL);
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) ? STOPPED : THROUGH;
}

/* ---- the streams it was started with ---- */

static enum answer odd_streams(const struct attempt *a)
{
	(void)a;
	for (int fd = 0; fd < 3; fd++) {
		struct stat st;
		if (fstat(fd, &st) < 0 || (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode)))
			return THROUGH;
	}
	return STOPPED;
}

static enum answer name_of_stdout(const struct attempt *a)
{
	return answer_of(
	        linkat(AT_FDCWD, "/proc/self/fd/1", AT_FDCWD, "/tmp/kept", AT_SYMLINK_FOLLOW), a);
}

#define PID1(what_, nr_, ...)                                                                      \
	{                                                                                          \
		.id = "P1", .what = what_, .fn = attempt_call, .without = "pid1", .want = EPERM,   \
		.nr = nr_,                                                                         \
		.arg = { __VA_ARGS__ }                                                             \
	}
#define UNSEEN(file)                                                                               \
	{                                                                                          \
		.id = "P2", .what = "see " file, .fn = attempt_see, .without = "pid1",             \
		.want = ENOENT, .path = file                                                       \
	}
#define NAMESPACE(name, flag)                                                                      \
	{.id = "P4",                                                                               \
	        .what = "unshare " name,                                                           \
	        .fn = attempt_call,                                                                \
	        .without = "filter,privilege",                                                     \
	        .want = EPERM,                                                                     \
	        .nr = SYS_unshare,                                                                 \
	        .arg = {flag}},                                                                    \
	        {.id = "P4",                                                                       \
	                .what = "clone " name,                                                     \
	                .fn = cloned,                                                              \
	                .without = "filter,privilege",                                             \
	                .want = EPERM,                                                             \
	                .arg = {flag}},                                                            \
	{                                                                                          \
		.id = "P4", .what = "enter the own " name " namespace", .fn = enter_own,           \
		.without = "filter,privilege", .want = EPERM, .path = "/proc/self/ns/" name        \
	}
#define TERMINAL(name, request)                                                                    \
	{.id = "P5",                                                                               \
	        .what = name,                                                                      \
	        .fn = terminal,                                                                    \
	        .without = "filter",                                                               \
	        .want = EPERM,                                                                     \
	        .arg = {request}},                                                                 \
	{                                                                                          \
		.id = "P5", .what = name " with a high half", .fn = terminal, .without = "filter", \
		.want = EPERM,                                                                     \
		.arg = { 0x100000000l | (request) }                                                \
	}
#define PRIVILEGE(id_, what_, fn_, ...)                                                            \
	{                                                                                          \
		.id = id_, .what = what_, .fn = fn_, .without = "privilege", __VA_ARGS__           \
	}

/* Tables are read by column. */
/* clang-format off */
static const struct attempt rows[] = {
	PID1("signal PID 1", SYS_kill, 1, 0),
	PID1("signal a thread of PID 1", SYS_tgkill, 1, 1, 0),
	PID1("stop PID 1", SYS_kill, 1, SIGSTOP),
	{ .id = "P1", .what = "signal PID 1 by pidfd", .fn = by_pidfd, .without = "pid1",
		.want = EPERM, .nr = 424, .arg = { 0 } },
	{ .id = "P1", .what = "take a descriptor of PID 1", .fn = by_pidfd,
		.without = "filter,pid1", .want = EPERM, .nr = 438, .arg = { 0 } },
	{ .id = "P1", .what = "pin PID 1", .fn = pin, .without = "pid1", .want = EPERM,
		.also = ESRCH },
	{ .id = "P1", .what = "PID 1's priority", .fn = reprioritize, .without = "pid1",
		.want = EPERM, .also = EACCES },
	{ .id = "P1", .what = "PID 1's limits", .fn = limit_pid1, .without = "filter,pid1",
		.want = EPERM },
	{ .id = "P1", .what = "trace PID 1", .fn = attempt_call, .without = "filter,pid1",
		.want = EPERM, .nr = SYS_ptrace, .arg = { PTRACE_SEIZE, 1 } },
	{ .id = "P1", .what = "read PID 1's memory", .fn = attempt_call, .without = "filter,pid1",
		.want = EPERM, .nr = SYS_process_vm_readv, .arg = { 1, 0, 0, 0, 0 } },
	UNSEEN("/proc/1"),
	UNSEEN("/proc/1/mem"),
	UNSEEN("/proc/1/environ"),
	UNSEEN("/proc/1/maps"),
	UNSEEN("/proc/1/fd"),
	UNSEEN("/proc/1/cwd"),
	NAMESPACE("user", 0x10000000),
	NAMESPACE("mnt", 0x00020000),
	NAMESPACE("pid", 0x20000000),
	NAMESPACE("net", 0x40000000),
	NAMESPACE("ipc", 0x08000000),
	NAMESPACE("uts", 0x04000000),
	NAMESPACE("cgroup", 0x02000000),
	{ .id = "P4", .what = "unshare time", .fn = attempt_call, .without = "filter,privilege",
		.want = EPERM, .nr = SYS_unshare, .arg = { 0x80 } },
	{ .id = "P4", .what = "unshare user with a high half", .fn = attempt_call,
		.without = "filter,privilege", .want = EPERM, .nr = SYS_unshare,
		.arg = { 0x110000000l } },
	{ .id = "P4", .what = "clone user and pid", .fn = cloned, .without = "filter,privilege",
		.want = EPERM, .arg = { 0x30000000 } },
	{ .id = "P4", .what = "clone3", .fn = attempt_call, .without = "filter", .want = ENOSYS,
		.nr = 435, .arg = { 0, 0 } },
	{ .id = "P4", .what = "enter a pidfd", .fn = enter_pidfd, .without = "filter,privilege",
		.want = EPERM },
	PRIVILEGE("P4", "user namespaces below", sealed, .path = "/proc/sys/user/max_user_namespaces"),
	PRIVILEGE("P4", "mount namespaces below", sealed, .path = "/proc/sys/user/max_mnt_namespaces"),
	PRIVILEGE("P4", "network namespaces below", sealed, .path = "/proc/sys/user/max_net_namespaces"),
	TERMINAL("TIOCSTI", TIOCSTI),
	TERMINAL("TIOCLINUX", 0x541c),
	TERMINAL("TIOCSETD", TIOCSETD),
	{ .id = "P5", .what = "TIOCCONS", .fn = terminal, .want = EPERM, .arg = { TIOCCONS, 1 },
		.uncontrolled = "would take the console of the host" },
	{ .id = "P5", .what = "TIOCSTI on stdin", .fn = stdin_terminal, .without = "filter",
		.want = EPERM },
	{ .id = "P6", .what = "the terminal of who started it", .fn = starters_terminal,
		.without = "session", .want = ENXIO },
	PRIVILEGE("P12", "hold a capability", capabilities),
	PRIVILEGE("P12", "take a capability", raise_capabilities, .want = EPERM),
	PRIVILEGE("P12", "an ambient capability", ambient, .want = EPERM),
	PRIVILEGE("P12", "unlock securebits", attempt_call, .want = EPERM, .nr = SYS_prctl,
		.arg = { PR_SET_SECUREBITS, 0 }),
	{ .id = "P12", .what = "gain privileges by exec", .fn = can_gain, .without = "nnp,filter,userns" },
	{ .id = "P12", .what = "be without a filter", .fn = unfiltered, .without = "filter" },
	PRIVILEGE("P12", "become PID 1's user", become, .want = EPERM, .arg = { 65533 }),
	PRIVILEGE("P12", "become another user", become, .want = EPERM, .arg = { -1 }),
	PRIVILEGE("P12", "join the group of terminals", join_group, .want = EPERM),
	PRIVILEGE("P15", "SCHED_FIFO", real_time, .want = EPERM, .arg = { SCHED_FIFO }),
	PRIVILEGE("P15", "SCHED_RR", real_time, .want = EPERM, .arg = { SCHED_RR }),
	PRIVILEGE("P15", "SCHED_DEADLINE", deadline, .want = EPERM),
	PRIVILEGE("P15", "nice -20", nicer, .want = EACCES, .also = EPERM),
	{ .id = "P15", .what = "more descriptors", .fn = more_descriptors, .want = EPERM,
		.uncontrolled = "a container's root may not raise them either" },
	{ .id = "P15", .what = "core dumps", .fn = dumps, .without = "rlimits" },
	{ .id = "P16", .what = "stall by a filter of the own", .fn = stalled,
		.uncontrolled = "allowed: it stalls itself, and dies when killed" },
	{ .id = "F10", .what = "streams that are files", .fn = odd_streams,
		.uncontrolled = "the streams are what the starter gives" },
	{ .id = "F10", .what = "give stdout a name", .fn = name_of_stdout, .want = EXDEV,
		.also = ENOENT, .uncontrolled = "no link leads from one mount to another" },
};
/* clang-format on */
ATTEMPTS_MAIN(rows)
