/* The kernel's surface: calls that nobody in a jail needs, and the ones whose arguments decide. */
#include "attempt.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define TEXT(s) ((long)(uintptr_t)(s))

/* ---- K2: other doors into the kernel ---- */

static enum answer killed(void (*fn)(void))
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		fn();
		_exit(0);
	}
	int status = 0;
	waitpid(pid, &status, 0);
	/* SIGILL: a processor that has no such instruction in this mode */
	return WIFSIGNALED(status) && (WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGILL)
	               ? STOPPED
	               : THROUGH;
}

static void do_int80(void)
{
	long ret;
	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
}

static void do_x32(void)
{
	(void)syscall(0x40000000 + SYS_getpid);
}

/* The kernel reads the sixth argument from the stack before it looks at the filter, below 4 GB, and
 * a fault there would pass for an answer.  It does not come back here: the way out is the 32-bit
 * vdso's. */
static void do_sysenter(void)
{
	char *stack = mmap(
	        NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (stack == MAP_FAILED)
		return;
	__asm__ volatile("mov %0, %%rsp\n\t"
	                 "mov %0, %%rbp\n\t"
	                 "sysenter"
	                 :
	                 : "r"(stack + 2048), "a"(20L)
	                 : "memory");
	__builtin_unreachable();
}

static enum answer int80(const struct attempt *a)
{
	(void)a;
	return killed(do_int80);
}

static enum answer x32(const struct attempt *a)
{
	(void)a;
	return killed(do_x32);
}

static enum answer sysenter(const struct attempt *a)
{
	(void)a;
	return killed(do_sysenter);
}

/* ---- K8: pages of files that are read-only ---- */

/* What Dirty Pipe began with: pages of /usr in a pipe. */
static enum answer splice_usr(const struct attempt *a)
{
	int p[2], file = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
	loff_t at = 1;
	if (pipe(p) < 0)
		return BROKEN;
	errno = 0;
	return answer_of(syscall(SYS_splice, file, &at, p[1], NULL, 1, 0), a);
}

static enum answer tee_pipe(const struct attempt *a)
{
	int p[2], q[2];
	if (pipe(p) < 0 || pipe(q) < 0 || write(p[1], "x", 1) != 1)
		return BROKEN;
	errno = 0;
	return answer_of(syscall(SYS_tee, p[0], q[1], 1, 0), a);
}

static enum answer gift_pages(const struct attempt *a)
{
	static char page[4096];
	struct iovec v = {page, 1};
	int p[2];
	if (pipe(p) < 0)
		return BROKEN;
	errno = 0;
	return answer_of(syscall(SYS_vmsplice, p[1], &v, 1, 0), a);
}

static enum answer map_to_write(const struct attempt *a)
{
	int fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return answer_of(p == MAP_FAILED ? -1 : 0, a);
}

/* ---- K12: one's own process ---- */

/* No argument of prctl(2) gives back what was taken. */
static enum answer prctl_sweep(const struct attempt *a)
{
	(void)a;
	for (int op = 0; op < 100; op++)
		for (unsigned long arg = 0; arg < 3; arg++)
			if (op != PR_SET_PDEATHSIG && op != PR_SET_NAME)
				(void)prctl(op, arg, arg, 0, 0);
	for (int cap = 0; cap < 41; cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			return THROUGH;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? STOPPED : THROUGH;
}

/* ---- K14: what browsers do to themselves ---- */

static enum answer no_landlock(const struct attempt *a)
{
	(void)a;
	errno = 0;
	long abi = syscall(444, NULL, 0, 1); /* the version, asked as programs ask */
	return abi >= 0 || errno == EOPNOTSUPP ? STOPPED : THROUGH;
}

static enum answer no_own_filter(const struct attempt *a)
{
	(void)a;
	return syscall(SYS_seccomp, 2, 0, &(uint32_t){0x7fff0000u}) == 0 ? STOPPED : THROUGH;
}

/* ---- K15: what others do, by counters ---- */

static void do_rdpmc(void)
{
	uint32_t lo, hi;
	__asm__ volatile("rdpmc" : "=a"(lo), "=d"(hi) : "c"(0));
}

static enum answer rdpmc(const struct attempt *a)
{
	pid_t pid = fork();
	if (pid == 0) {
		do_rdpmc();
		_exit(0);
	}
	int status = 0;
	(void)a;
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? STOPPED : THROUGH;
}

#define HOST "filter,privilege"
#define CALL(id_, what_, nr_, want_, lax, ...)                                                     \
	{                                                                                          \
		.id = id_, .what = what_, .fn = attempt_call, .without = lax, .want = want_,       \
		.nr = nr_,                                                                         \
		.arg = { __VA_ARGS__ }                                                             \
	}
#define CALL_SINCE(id_, what_, nr_, want_, lax, since_)                                            \
	{                                                                                          \
		.id = id_, .what = what_, .fn = attempt_call, .without = lax, .want = want_,       \
		.nr = nr_, .since = since_                                                         \
	}
#define GONE(id_, what_, nr_)                                                                      \
	{                                                                                          \
		.id = id_, .what = what_, .fn = attempt_call, .want = ENOSYS, .nr = nr_,           \
		.uncontrolled = "no kernel has it any more, or not yet"                            \
	}

/* Tables are read by column. */
/* clang-format off */
static const struct attempt rows[] = {
	{ .id = "K2", .what = "a 32-bit call", .fn = int80, .without = "filter" },
	{ .id = "K2", .what = "an x32 call", .fn = x32, .without = "filter" },
	{ .id = "K2", .what = "sysenter", .fn = sysenter,
		.uncontrolled = "some processors have no such instruction" },
	CALL("K4", "io_uring_setup", 425, ENOSYS, "filter", 1, 0),
	CALL("K4", "io_uring_enter", 426, ENOSYS, "filter", -1),
	CALL("K4", "io_uring_register", 427, ENOSYS, "filter", -1),
	CALL("K5", "keyctl", 250, ENOSYS, "filter", 0, -3, 0),
	CALL("K5", "add_key", 248, ENOSYS, "filter"),
	CALL("K5", "request_key", 249, ENOSYS, "filter"),
	CALL("K6", "userfaultfd", 323, ENOSYS, "filter", -1),
	{ .id = "K6", .what = "memfd_secret", .fn = attempt_call, .without = "filter",
		.want = ENOSYS, .since = KERNEL(6, 5), .nr = 447, .arg = { -1 } },
	CALL("K6", "bpf", 321, EPERM, HOST),
	CALL("K6", "perf_event_open", 298, EPERM, HOST),
	CALL("K6", "kexec_load", 246, EPERM, HOST, 0, 1 << 20, 0, 0xffff),
	CALL("K6", "kexec_file_load", 320, EPERM, HOST, -1, -1, 0, 0, ~0l),
	CALL("K6", "init_module", 175, EPERM, HOST),
	CALL("K6", "finit_module", 313, EPERM, HOST, -1),
	CALL("K6", "delete_module", 176, EPERM, HOST),
	CALL("K6", "iopl", 172, EPERM, HOST),
	CALL("K6", "ioperm", 173, EPERM, HOST, 0, 1, 0),
	CALL("K6", "modify_ldt", 154, EPERM, "filter"),
	CALL("K6", "acct", 163, EPERM, HOST, TEXT("/no-such-file")),
	CALL("K6", "reboot", 169, EPERM, HOST),
	CALL("K6", "syslog", 103, EPERM, HOST, 10),
	CALL("K6", "vhangup", 153, EPERM, HOST),
	CALL("K6", "sethostname", 170, EPERM, HOST, TEXT("x"), -1),
	CALL("K6", "setdomainname", 171, EPERM, HOST, TEXT("x"), -1),
	CALL("K6", "settimeofday", 164, EPERM, HOST),
	CALL("K6", "clock_settime", 227, EPERM, HOST),
	CALL("K6", "adjtimex", 159, EPERM, "filter"),
	CALL("K6", "clock_adjtime", 305, EPERM, "filter"),
	CALL("K6", "mbind", 237, EPERM, "filter", 0, 0, -1),
	CALL("K6", "set_mempolicy", 238, EPERM, "filter", -1),
	CALL("K6", "get_mempolicy", 239, EPERM, "filter"),
	CALL("K6", "move_pages", 279, EPERM, "filter", 0, 0, 0, 0, -1),
	CALL("K6", "migrate_pages", 256, EPERM, HOST),
	CALL("K6", "process_vm_readv", 310, EPERM, "filter"),
	CALL("K6", "process_vm_writev", 311, EPERM, "filter"),
	CALL("K6", "kcmp", 312, EPERM, "filter"),
	CALL("K6", "process_madvise", 440, EPERM, "filter", -1),
	CALL("K6", "ptrace", 101, EPERM, "filter", 0),
	CALL("K6", "io_setup", 206, ENOSYS, "filter"),
	CALL("K6", "mq_open", 240, ENOSYS, "filter"),
	CALL_SINCE("K6", "lsm_list_modules", 461, ENOSYS, "filter", KERNEL(6, 8)),
	CALL_SINCE("K6", "file_setattr", 469, ENOSYS, "filter", KERNEL(6, 17)),
	GONE("K6", "uselib", 134),
	GONE("K6", "_sysctl", 156),
	GONE("K6", "nfsservctl", 180),
	GONE("K6", "a call nobody knows", 999),
	{ .id = "K8", .what = "splice", .fn = splice_usr, .without = "filter", .want = EINVAL },
	{ .id = "K8", .what = "tee", .fn = tee_pipe, .without = "filter", .want = EINVAL },
	{ .id = "K8", .what = "vmsplice", .fn = gift_pages, .without = "filter", .want = EINVAL },
	{ .id = "K8", .what = "map a file of /usr to write", .fn = map_to_write, .want = EACCES,
		.uncontrolled = "what is opened to read is not mapped to write, anywhere" },
	CALL("K12", "READ_IMPLIES_EXEC", 135, EPERM, "filter", 0x400000),
	CALL("K12", "READ_IMPLIES_EXEC with a high half", 135, EPERM, "filter", 0x100400000l),
	CALL("K12", "another personality", 135, EPERM, "filter", 5),
	{ .id = "K12", .what = "all of prctl", .fn = prctl_sweep, .without = "privilege" },
	{ .id = "K14", .what = "be kept from Landlock", .fn = no_landlock,
		.uncontrolled = "here the answer is that it works" },
	{ .id = "K14", .what = "be kept from a filter of the own", .fn = no_own_filter,
		.uncontrolled = "here the answer is that it works" },
	{ .id = "K15", .what = "rdpmc", .fn = rdpmc,
		.uncontrolled = "the processor refuses it, jail or not" },
	{ .id = "K15", .what = "/proc/interrupts", .fn = attempt_read, .without = "masks,privilege",
		.path = "/proc/interrupts" },
	{ .id = "K15", .what = "/proc/timer_list", .fn = attempt_read, .without = "masks,privilege",
		.path = "/proc/timer_list" },
	{ .id = "K15", .what = "/proc/sched_debug", .fn = attempt_read, .without = "masks,privilege",
		.path = "/proc/sched_debug" },
};
/* clang-format on */
ATTEMPTS_MAIN(rows)
