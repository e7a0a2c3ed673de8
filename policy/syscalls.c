#include "policy/syscalls.h"
#include "base/mem.h"
#include "policy/arch.h"
#include "policy/policy.h"
#include "policy/scmp.h"

#include <linux/seccomp.h>
#include <string.h>

/* Tables are read by column. */
/* clang-format off */
#define ALLOW SECCOMP_RET_ALLOW
#define ERRNO(e) (SECCOMP_RET_ERRNO | (uint32_t)(e))

#define LOW 0xffffffffu
#define ARG(number, bits, ...)                                                                     \
	{ .arg = (number), .mask = (bits), .n = sizeof((uint32_t[]){ __VA_ARGS__ }) / 4,           \
		.values = { __VA_ARGS__ } }
#define POINTER_NULL(number) { .arg = (number), .wide = true, .mask = LOW, .n = 1, .values = { 0 } }

/* ---- rules ---- */

/* CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
#define NAMESPACES 0x7e020000u
/* unshare knows CLONE_NEWTIME too; in clone(2) that bit belongs to the exit signal. */
#define NAMESPACES_AND_TIME (NAMESPACES | 0x80u)

static const struct syscall_rule clone_rules[] = {
	{ .tests = { ARG(0, NAMESPACES, 0) }, .n = 1, .verdict = ALLOW },
};
static const struct syscall_rule unshare_rules[] = {
	{ .tests = { ARG(0, NAMESPACES_AND_TIME, 0) }, .n = 1, .verdict = ALLOW },
};

enum { FAMILY_UNIX = 1, FAMILY_INET = 2, FAMILY_INET6 = 10, FAMILY_NETLINK = 16 };
enum { TYPE_STREAM = 1, TYPE_DGRAM = 2, TYPE_SEQPACKET = 5, TYPE_BITS = 0xf };
enum { PROTO_TCP = 6, PROTO_UDP = 17, NETLINK_FAMILY_ROUTE = 0 };

static const struct syscall_rule socket_rules[] = {
	{ .tests = { ARG(0, LOW, FAMILY_UNIX),
		  ARG(1, TYPE_BITS, TYPE_STREAM, TYPE_DGRAM, TYPE_SEQPACKET) },
		.n = 2, .verdict = ALLOW, .unless = POLICY_NO_UNIX_SOCKETS },
	{ .tests = { ARG(0, LOW, FAMILY_INET, FAMILY_INET6), ARG(1, TYPE_BITS, TYPE_STREAM),
		  ARG(2, LOW, 0, PROTO_TCP) },
		.n = 3, .verdict = ALLOW },
	{ .tests = { ARG(0, LOW, FAMILY_INET, FAMILY_INET6), ARG(1, TYPE_BITS, TYPE_DGRAM),
		  ARG(2, LOW, 0, PROTO_UDP) },
		.n = 3, .verdict = ALLOW },
	/* getifaddrs.  The other protocols of netlink lead to xfrm and nftables. */
	{ .tests = { ARG(0, LOW, FAMILY_NETLINK), ARG(2, LOW, NETLINK_FAMILY_ROUTE) },
		.n = 2, .verdict = ALLOW },
	/* Go tries MPTCP first and takes plain TCP after this errno. */
	{ .tests = { ARG(0, LOW, FAMILY_INET, FAMILY_INET6) },
		.n = 1, .verdict = ERRNO(EPROTONOSUPPORT) },
	{ .tests = { ARG(0, LOW, FAMILY_UNIX) },
		.n = 1, .verdict = ERRNO(EPROTONOSUPPORT), .unless = POLICY_NO_UNIX_SOCKETS },
};
static const struct syscall_rule socketpair_rules[] = {
	{ .tests = { ARG(0, LOW, FAMILY_UNIX) }, .n = 1, .verdict = ALLOW },
};

/* TIOCSTI and TIOCLINUX type into a terminal, TIOCCONS takes the console, TIOCSETD loads line
 * disciplines. */
static const struct syscall_rule ioctl_rules[] = {
	{ .tests = { ARG(1, LOW, 0x5412, 0x541c, 0x541d, 0x5423) },
		.n = 1, .verdict = ERRNO(EPERM) },
};

#define OPTIONS(level, ...)                                                                        \
	{ .tests = { ARG(1, LOW, (level)), ARG(2, LOW, __VA_ARGS__) }, .n = 2,                     \
		.verdict = ERRNO(ENOPROTOOPT) }
static const struct syscall_rule setsockopt_rules[] = {
	OPTIONS(6, 19, 31),	    /* TCP_REPAIR, TCP_ULP */
	OPTIONS(17, 100),	    /* UDP_ENCAP */
	OPTIONS(0, 17, 64, 65),	    /* IP_XFRM_POLICY, IPT_SO_SET_REPLACE, _ADD_COUNTERS */
	OPTIONS(41, 35, 64, 65),    /* the same of IPv6 */
	OPTIONS(1, 26, 50, 51, 52), /* SO_ATTACH_FILTER, _BPF, _REUSEPORT_CBPF, _EBPF */
};

/* MSG_OOB, bit 0 of the flags: out-of-band data of unix sockets had use-after-frees. */
static const struct syscall_rule oob_arg3_rules[] = {
	{ .tests = { ARG(3, 1, 1) }, .n = 1, .verdict = ERRNO(EOPNOTSUPP) },
};
static const struct syscall_rule oob_arg2_rules[] = {
	{ .tests = { ARG(2, 1, 1) }, .n = 1, .verdict = ERRNO(EOPNOTSUPP) },
};

/* Linux, Linux32, UNAME26 with both, ADDR_NO_RANDOMIZE (gdb, TSan), and the question. */
static const struct syscall_rule personality_rules[] = {
	{ .tests = { ARG(0, LOW, 0, 8, 0x20000, 0x20008, 0x40000, LOW) },
		.n = 1, .verdict = ALLOW },
};

/* Its own limits, or any process's to read: the agent must not set those of PID 1. */
static const struct syscall_rule prlimit_rules[] = {
	{ .tests = { ARG(0, LOW, 0) }, .n = 1, .verdict = ALLOW },
	{ .tests = { POINTER_NULL(2) }, .n = 1, .verdict = ALLOW },
};

/* Values below 512 bytes.  A list of access rights is kept with its inode, which a file system in
 * memory never drops, and the kernel charges it to nobody: 64 KiB twice for each of 200,000. */
static const struct syscall_rule xattr_rules[] = {
	{ .tests = { { .arg = 3, .wide = true, .mask = 0xfffffe00u, .n = 1, .values = { 0 } } },
		.n = 1, .verdict = ALLOW },
};

/* ---- groups ---- */

static const struct {
	const char *name;
	uint32_t verdict;
	const char *why;
} groups[SYSCALLS_GROUPS] = {
	[SYSCALLS_FILES] = { "files", ALLOW, "files and descriptors; what may be opened is the "
		"mount tree's affair" },
	[SYSCALLS_MEMORY] = { "memory", ALLOW, "own memory, charged to the jail's cgroup" },
	[SYSCALLS_PROCESS] = { "process", ALLOW, "processes, signals and futexes of the own pid "
		"namespace" },
	[SYSCALLS_IDS] = { "ids", ALLOW, "harmless without capabilities; self-restriction only "
		"tightens" },
	[SYSCALLS_LIMITS] = { "limits", ALLOW, "own limits and scheduling" },
	[SYSCALLS_TIME] = { "time", ALLOW, "reading clocks, own timers" },
	[SYSCALLS_POLL] = { "poll", ALLOW, "waiting" },
	[SYSCALLS_SOCKETS] = { "sockets", ALLOW, "sockets that socket(2) was allowed to make" },
	[SYSCALLS_IPC] = { "ipc", ALLOW, "System V IPC of the own namespace" },
	[SYSCALLS_TESTED] = { "tested", ALLOW, "decided by arguments" },
	[SYSCALLS_TRACE] = { "trace", ERRNO(EPERM), "looking into other processes; on with "
		"seccomp.debug" },
	[SYSCALLS_HOST] = { "host", ERRNO(EPERM), "changes or reads the host; programs expect "
		"EPERM" },
	[SYSCALLS_NUMA] = { "numa", ERRNO(EPERM), "memory policy: kernel bugs, no need" },
	[SYSCALLS_FALLBACK] = { "fallback", ERRNO(ENOSYS), "new attack surface; programs fall back "
		"on ENOSYS" },
	[SYSCALLS_OBSOLETE] = { "obsolete", ERRNO(ENOSYS), "no longer in kernels" },
	[SYSCALLS_SPLICE] = { "splice", ERRNO(EINVAL), "page-cache writes (Dirty Pipe); "
		"EINVAL means not for this file" },
};

/* ---- the table ---- */

#define ROW(n, g) { .name = (n), .group = SYSCALLS_##g }
#define TESTED(n, list, fallback, reason)                                                          \
	{ .name = (n), .group = SYSCALLS_TESTED, .rules = (list), .nrules = ARRAY_LEN(list),       \
		.otherwise = (fallback), .why = (reason) }

/* Numbers are given where libseccomp 2.5.4 knows none; from 403 on they are the same on all
 * architectures. */
static const struct syscall_row rows[] = {
	ROW("read", FILES), ROW("write", FILES), ROW("readv", FILES), ROW("writev", FILES),
	ROW("pread64", FILES), ROW("pwrite64", FILES), ROW("preadv", FILES),
	ROW("pwritev", FILES), ROW("preadv2", FILES), ROW("pwritev2", FILES),
	ROW("open", FILES), ROW("openat", FILES), ROW("openat2", FILES), ROW("creat", FILES),
	ROW("close", FILES), ROW("close_range", FILES), ROW("dup", FILES), ROW("dup2", FILES),
	ROW("dup3", FILES), ROW("pipe", FILES), ROW("pipe2", FILES), ROW("lseek", FILES),
	ROW("fcntl", FILES), ROW("flock", FILES), ROW("fsync", FILES), ROW("fdatasync", FILES),
	ROW("sync", FILES), ROW("syncfs", FILES), ROW("sync_file_range", FILES),
	ROW("ftruncate", FILES), ROW("truncate", FILES), ROW("fallocate", FILES),
	ROW("fadvise64", FILES), ROW("readahead", FILES), ROW("copy_file_range", FILES),
	ROW("sendfile", FILES), ROW("stat", FILES), ROW("fstat", FILES), ROW("lstat", FILES),
	ROW("newfstatat", FILES), ROW("statx", FILES), ROW("statfs", FILES),
	ROW("fstatfs", FILES), ROW("access", FILES), ROW("faccessat", FILES),
	ROW("faccessat2", FILES), ROW("getdents", FILES), ROW("getdents64", FILES),
	ROW("getcwd", FILES), ROW("chdir", FILES), ROW("fchdir", FILES), ROW("rename", FILES),
	ROW("renameat", FILES), ROW("renameat2", FILES), ROW("mkdir", FILES),
	ROW("mkdirat", FILES), ROW("rmdir", FILES), ROW("link", FILES), ROW("linkat", FILES),
	ROW("unlink", FILES), ROW("unlinkat", FILES), ROW("symlink", FILES),
	ROW("symlinkat", FILES), ROW("readlink", FILES), ROW("readlinkat", FILES),
	ROW("chmod", FILES), ROW("fchmod", FILES), ROW("fchmodat", FILES),
	{ .name = "fchmodat2", .number = 452, .group = SYSCALLS_FILES },
	ROW("chown", FILES), ROW("fchown", FILES), ROW("lchown", FILES), ROW("fchownat", FILES),
	ROW("umask", FILES), ROW("utime", FILES), ROW("utimes", FILES), ROW("utimensat", FILES),
	ROW("futimesat", FILES), ROW("mknod", FILES), ROW("mknodat", FILES),
	ROW("getxattr", FILES), ROW("lgetxattr", FILES), ROW("fgetxattr", FILES),
	ROW("listxattr", FILES), ROW("llistxattr", FILES), ROW("flistxattr", FILES),
	ROW("removexattr", FILES), ROW("lremovexattr", FILES), ROW("fremovexattr", FILES),
	{ .name = "getxattrat", .number = 464, .group = SYSCALLS_FILES },
	{ .name = "listxattrat", .number = 465, .group = SYSCALLS_FILES },
	{ .name = "removexattrat", .number = 466, .group = SYSCALLS_FILES },
	ROW("inotify_init", FILES), ROW("inotify_init1", FILES),
	ROW("inotify_add_watch", FILES), ROW("inotify_rm_watch", FILES),

	ROW("mmap", MEMORY), ROW("munmap", MEMORY), ROW("mremap", MEMORY),
	ROW("mprotect", MEMORY), ROW("madvise", MEMORY), ROW("msync", MEMORY),
	ROW("mincore", MEMORY), ROW("brk", MEMORY), ROW("mlock", MEMORY), ROW("mlock2", MEMORY),
	ROW("munlock", MEMORY), ROW("mlockall", MEMORY), ROW("munlockall", MEMORY),
	ROW("membarrier", MEMORY), ROW("memfd_create", MEMORY), ROW("pkey_alloc", MEMORY),
	ROW("pkey_free", MEMORY), ROW("pkey_mprotect", MEMORY), ROW("remap_file_pages", MEMORY),
	ROW("process_mrelease", MEMORY),
	{ .name = "cachestat", .number = 451, .group = SYSCALLS_MEMORY },
	{ .name = "map_shadow_stack", .number = 453, .group = SYSCALLS_MEMORY },
	{ .name = "mseal", .number = 462, .group = SYSCALLS_MEMORY },

	ROW("fork", PROCESS), ROW("vfork", PROCESS), ROW("execve", PROCESS),
	ROW("execveat", PROCESS), ROW("exit", PROCESS), ROW("exit_group", PROCESS),
	ROW("wait4", PROCESS), ROW("waitid", PROCESS), ROW("kill", PROCESS),
	ROW("tkill", PROCESS), ROW("tgkill", PROCESS), ROW("rt_sigaction", PROCESS),
	ROW("rt_sigprocmask", PROCESS), ROW("rt_sigreturn", PROCESS),
	ROW("rt_sigpending", PROCESS), ROW("rt_sigtimedwait", PROCESS),
	ROW("rt_sigqueueinfo", PROCESS), ROW("rt_tgsigqueueinfo", PROCESS),
	ROW("rt_sigsuspend", PROCESS), ROW("sigaltstack", PROCESS), ROW("signalfd", PROCESS),
	ROW("signalfd4", PROCESS), ROW("pause", PROCESS), ROW("alarm", PROCESS),
	ROW("pidfd_open", PROCESS), ROW("pidfd_send_signal", PROCESS),
	ROW("restart_syscall", PROCESS), ROW("futex", PROCESS),
	{ .name = "futex_waitv", .number = 449, .group = SYSCALLS_PROCESS },
	{ .name = "futex_wake", .number = 454, .group = SYSCALLS_PROCESS },
	{ .name = "futex_wait", .number = 455, .group = SYSCALLS_PROCESS },
	{ .name = "futex_requeue", .number = 456, .group = SYSCALLS_PROCESS },
	ROW("set_robust_list", PROCESS), ROW("get_robust_list", PROCESS), ROW("rseq", PROCESS),
	ROW("set_tid_address", PROCESS), ROW("gettid", PROCESS), ROW("getpid", PROCESS),
	ROW("getppid", PROCESS), ROW("getpgid", PROCESS), ROW("getpgrp", PROCESS),
	ROW("getsid", PROCESS), ROW("setsid", PROCESS), ROW("setpgid", PROCESS),
	ROW("getrandom", PROCESS),

	ROW("getuid", IDS), ROW("geteuid", IDS), ROW("getgid", IDS), ROW("getegid", IDS),
	ROW("getresuid", IDS), ROW("getresgid", IDS), ROW("getgroups", IDS), ROW("setuid", IDS),
	ROW("setgid", IDS), ROW("setreuid", IDS), ROW("setregid", IDS), ROW("setresuid", IDS),
	ROW("setresgid", IDS), ROW("setfsuid", IDS), ROW("setfsgid", IDS),
	ROW("setgroups", IDS), ROW("capget", IDS), ROW("capset", IDS), ROW("prctl", IDS),
	ROW("arch_prctl", IDS), ROW("seccomp", IDS), ROW("landlock_create_ruleset", IDS),
	ROW("landlock_add_rule", IDS), ROW("landlock_restrict_self", IDS),

	ROW("getrlimit", LIMITS), ROW("setrlimit", LIMITS), ROW("getrusage", LIMITS),
	ROW("times", LIMITS), ROW("sysinfo", LIMITS), ROW("uname", LIMITS),
	ROW("getpriority", LIMITS), ROW("setpriority", LIMITS), ROW("ioprio_get", LIMITS),
	ROW("ioprio_set", LIMITS), ROW("getcpu", LIMITS), ROW("sched_yield", LIMITS),
	ROW("sched_getaffinity", LIMITS), ROW("sched_setaffinity", LIMITS),
	ROW("sched_getparam", LIMITS), ROW("sched_setparam", LIMITS),
	ROW("sched_getscheduler", LIMITS), ROW("sched_setscheduler", LIMITS),
	ROW("sched_get_priority_max", LIMITS), ROW("sched_get_priority_min", LIMITS),
	ROW("sched_rr_get_interval", LIMITS), ROW("sched_getattr", LIMITS),
	ROW("sched_setattr", LIMITS),

	ROW("clock_gettime", TIME), ROW("clock_getres", TIME), ROW("clock_nanosleep", TIME),
	ROW("nanosleep", TIME), ROW("gettimeofday", TIME), ROW("time", TIME),
	ROW("timer_create", TIME), ROW("timer_settime", TIME), ROW("timer_gettime", TIME),
	ROW("timer_getoverrun", TIME), ROW("timer_delete", TIME), ROW("timerfd_create", TIME),
	ROW("timerfd_settime", TIME), ROW("timerfd_gettime", TIME), ROW("getitimer", TIME),
	ROW("setitimer", TIME),

	ROW("poll", POLL), ROW("ppoll", POLL), ROW("select", POLL), ROW("pselect6", POLL),
	ROW("epoll_create", POLL), ROW("epoll_create1", POLL), ROW("epoll_ctl", POLL),
	ROW("epoll_wait", POLL), ROW("epoll_pwait", POLL), ROW("epoll_pwait2", POLL),
	ROW("eventfd", POLL), ROW("eventfd2", POLL),

	ROW("bind", SOCKETS), ROW("listen", SOCKETS), ROW("accept", SOCKETS),
	ROW("accept4", SOCKETS), ROW("connect", SOCKETS), ROW("getsockname", SOCKETS),
	ROW("getpeername", SOCKETS), ROW("getsockopt", SOCKETS), ROW("shutdown", SOCKETS),

	ROW("shmget", IPC), ROW("shmat", IPC), ROW("shmctl", IPC), ROW("shmdt", IPC),
	ROW("semget", IPC), ROW("semop", IPC), ROW("semctl", IPC), ROW("semtimedop", IPC),
	ROW("msgget", IPC), ROW("msgsnd", IPC), ROW("msgrcv", IPC), ROW("msgctl", IPC),

	ROW("ptrace", TRACE), ROW("process_vm_readv", TRACE), ROW("process_vm_writev", TRACE),
	ROW("kcmp", TRACE), ROW("pidfd_getfd", TRACE), ROW("process_madvise", TRACE),

	ROW("mount", HOST), ROW("umount2", HOST), ROW("pivot_root", HOST), ROW("chroot", HOST),
	ROW("setns", HOST), ROW("bpf", HOST), ROW("perf_event_open", HOST),
	ROW("kexec_load", HOST), ROW("kexec_file_load", HOST), ROW("init_module", HOST),
	ROW("finit_module", HOST), ROW("delete_module", HOST), ROW("swapon", HOST),
	ROW("swapoff", HOST), ROW("reboot", HOST), ROW("iopl", HOST), ROW("ioperm", HOST),
	ROW("modify_ldt", HOST), ROW("acct", HOST), ROW("settimeofday", HOST),
	ROW("clock_settime", HOST), ROW("adjtimex", HOST), ROW("clock_adjtime", HOST),
	ROW("quotactl", HOST), ROW("quotactl_fd", HOST), ROW("syslog", HOST),
	ROW("vhangup", HOST), ROW("open_by_handle_at", HOST), ROW("name_to_handle_at", HOST),
	ROW("fanotify_init", HOST), ROW("fanotify_mark", HOST), ROW("sethostname", HOST),
	ROW("setdomainname", HOST),

	ROW("mbind", NUMA), ROW("set_mempolicy", NUMA),
	{ .name = "set_mempolicy_home_node", .number = 450, .group = SYSCALLS_NUMA },
	ROW("get_mempolicy", NUMA), ROW("move_pages", NUMA), ROW("migrate_pages", NUMA),

	ROW("clone3", FALLBACK), ROW("io_uring_setup", FALLBACK),
	ROW("io_uring_enter", FALLBACK), ROW("io_uring_register", FALLBACK),
	ROW("userfaultfd", FALLBACK), ROW("memfd_secret", FALLBACK), ROW("keyctl", FALLBACK),
	ROW("add_key", FALLBACK), ROW("request_key", FALLBACK), ROW("fsopen", FALLBACK),
	ROW("fsconfig", FALLBACK), ROW("fsmount", FALLBACK), ROW("fspick", FALLBACK),
	ROW("open_tree", FALLBACK),
	{ .name = "open_tree_attr", .number = 467, .group = SYSCALLS_FALLBACK },
	ROW("move_mount", FALLBACK), ROW("mount_setattr", FALLBACK),
	{ .name = "statmount", .number = 457, .group = SYSCALLS_FALLBACK },
	{ .name = "listmount", .number = 458, .group = SYSCALLS_FALLBACK },
	{ .name = "lsm_get_self_attr", .number = 459, .group = SYSCALLS_FALLBACK },
	{ .name = "lsm_set_self_attr", .number = 460, .group = SYSCALLS_FALLBACK },
	{ .name = "lsm_list_modules", .number = 461, .group = SYSCALLS_FALLBACK },
	/* the size of the value is behind a pointer: setxattr below */
	{ .name = "setxattrat", .number = 463, .group = SYSCALLS_FALLBACK },
	{ .name = "file_getattr", .number = 468, .group = SYSCALLS_FALLBACK },
	{ .name = "file_setattr", .number = 469, .group = SYSCALLS_FALLBACK },
	{ .name = "listns", .number = 470, .group = SYSCALLS_FALLBACK },
	/* fs.aio-max-nr is one number for the whole host, and anybody may take all of it */
	ROW("io_setup", FALLBACK), ROW("io_submit", FALLBACK), ROW("io_getevents", FALLBACK),
	ROW("io_pgetevents", FALLBACK), ROW("io_cancel", FALLBACK), ROW("io_destroy", FALLBACK),
	ROW("mq_open", FALLBACK), ROW("mq_unlink", FALLBACK), ROW("mq_timedsend", FALLBACK),
	ROW("mq_timedreceive", FALLBACK), ROW("mq_notify", FALLBACK),
	ROW("mq_getsetattr", FALLBACK),

	ROW("uselib", OBSOLETE), ROW("ustat", OBSOLETE), ROW("sysfs", OBSOLETE),
	ROW("_sysctl", OBSOLETE), ROW("nfsservctl", OBSOLETE), ROW("lookup_dcookie", OBSOLETE),

	ROW("splice", SPLICE), ROW("tee", SPLICE), ROW("vmsplice", SPLICE),

	/* The kernel's own trampolines call them where the host traces a binary with a probe, and
	 * it asks no filter about them (6.14, 6.18); from elsewhere they do nothing. */
	{ .name = "uretprobe", .number = 335, .x86 = true, .group = SYSCALLS_PROCESS },
	{ .name = "uprobe", .number = 336, .x86 = true, .group = SYSCALLS_PROCESS },

	TESTED("clone", clone_rules, ERRNO(EPERM), "no new namespaces"),
	TESTED("unshare", unshare_rules, ERRNO(EPERM), "no new namespaces"),
	TESTED("socket", socket_rules, ERRNO(EAFNOSUPPORT),
		"unix, TCP, UDP and route netlink; other families load modules or reach the host"),
	TESTED("socketpair", socketpair_rules, ERRNO(EAFNOSUPPORT), "unix only"),
	TESTED("ioctl", ioctl_rules, ALLOW, "no typing into terminals, no line disciplines"),
	TESTED("setsockopt", setsockopt_rules, ALLOW, "no filters, no protocol layers, no ipsec"),
	TESTED("sendto", oob_arg3_rules, ALLOW, "no out-of-band data"),
	TESTED("recvfrom", oob_arg3_rules, ALLOW, "no out-of-band data"),
	TESTED("sendmmsg", oob_arg3_rules, ALLOW, "no out-of-band data"),
	TESTED("recvmmsg", oob_arg3_rules, ALLOW, "no out-of-band data"),
	TESTED("sendmsg", oob_arg2_rules, ALLOW, "no out-of-band data"),
	TESTED("recvmsg", oob_arg2_rules, ALLOW, "no out-of-band data"),
	TESTED("setxattr", xattr_rules, ERRNO(EOPNOTSUPP), "values below 512 bytes"),
	TESTED("lsetxattr", xattr_rules, ERRNO(EOPNOTSUPP), "values below 512 bytes"),
	TESTED("fsetxattr", xattr_rules, ERRNO(EOPNOTSUPP), "values below 512 bytes"),
	TESTED("personality", personality_rules, ERRNO(EPERM), "no READ_IMPLIES_EXEC and its like"),
	TESTED("prlimit64", prlimit_rules, ERRNO(EPERM), "own limits; others to read only"),
};
/* clang-format on */

size_t syscalls_count(void)
{
	return ARRAY_LEN(rows);
}

const struct syscall_row *syscalls_row(size_t i)
{
	return &rows[i];
}

const struct syscall_row *syscalls_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

const struct syscall_row *syscalls_by_number(int nr, const struct arch *arch)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (syscalls_number(&rows[i], arch) == nr)
			return &rows[i];
	return NULL;
}

int syscalls_number(const struct syscall_row *row, const struct arch *arch)
{
	if (row->x86 && strcmp(arch->name, "x86_64") != 0)
		return -1;
	return row->number ? row->number : scmp_number(arch, row->name);
}

const char *syscalls_group_name(enum syscall_group g)
{
	return groups[g].name;
}

const char *syscalls_why(const struct syscall_row *row)
{
	return row->why ? row->why : groups[row->group].why;
}

uint32_t syscalls_otherwise(const struct syscall_row *row, uint32_t flags)
{
	if (row->group == SYSCALLS_TESTED)
		return row->otherwise;
	if (row->group == SYSCALLS_TRACE && (flags & POLICY_DEBUG))
		return ALLOW;
	return groups[row->group].verdict;
}

static bool test_holds(const struct syscall_test *t, uint64_t arg)
{
	if (t->wide && arg >> 32)
		return false;
	for (uint8_t i = 0; i < t->n; i++)
		if (((uint32_t)arg & t->mask) == t->values[i])
			return true;
	return false;
}

static bool rule_holds(const struct syscall_rule *r, const uint64_t args[6], uint32_t flags)
{
	if (r->unless & flags)
		return false;
	for (uint8_t i = 0; i < r->n; i++)
		if (!test_holds(&r->tests[i], args[r->tests[i].arg]))
			return false;
	return true;
}

int syscalls_rule(const struct syscall_row *row, const uint64_t args[6], uint32_t flags)
{
	for (size_t i = 0; i < row->nrules; i++)
		if (rule_holds(&row->rules[i], args, flags))
			return (int)i;
	return -1;
}

uint32_t syscalls_verdict(const struct syscall_row *row, const uint64_t args[6], uint32_t flags)
{
	if (!row)
		return SYSCALLS_DEFAULT;
	int rule = syscalls_rule(row, args, flags);
	return rule < 0 ? syscalls_otherwise(row, flags) : row->rules[rule].verdict;
}

/* ---- printing ---- */

const char *verdict_text(uint32_t verdict)
{
	if (verdict == SECCOMP_RET_ALLOW)
		return "allow";
	if (verdict == SECCOMP_RET_KILL_PROCESS)
		return "kill";
	const char *name = strerrorname_np((int)(verdict & SECCOMP_RET_DATA));
	return name ? name : "errno?";
}

static void print_test(const struct syscall_test *t, struct buf *to)
{
	buf_printf(to, "%s%u", t->wide ? "wide " : "", t->arg);
	if (t->mask != LOW)
		buf_printf(to, "&0x%x", t->mask);
	buf_puts(to, "=");
	for (uint8_t i = 0; i < t->n; i++)
		buf_printf(to, "%s0x%x", i ? "|" : "", t->values[i]);
}

void syscalls_print_rule(const struct syscall_rule *r, struct buf *to)
{
	buf_puts(to, "[");
	for (uint8_t t = 0; t < r->n; t++) {
		buf_puts(to, t ? ", " : "");
		print_test(&r->tests[t], to);
	}
	buf_printf(to, "] %s", verdict_text(r->verdict));
}

void syscalls_print(
        const struct syscall_row *row, const struct arch *arch, uint32_t flags, struct buf *to)
{
	buf_printf(
	        to, "%d\t%s\t%s\t", syscalls_number(row, arch), row->name, groups[row->group].name);
	for (size_t i = 0; i < row->nrules; i++) {
		const struct syscall_rule *r = &row->rules[i];
		if (r->unless & flags)
			continue;
		syscalls_print_rule(r, to);
		buf_puts(to, ", else ");
	}
	buf_puts(to, verdict_text(syscalls_otherwise(row, flags)));
}
