/*
 * checks.h - what of the host, besides the layers, makes a jail stronger or weaker, as one list.
 *
 * agentboxd looks (jail/checkup.h); the supervisor and abctl tell.  Nothing here is part of a
 * jail, so none of it is required by a policy: `bad` is what agentbox itself cannot work with,
 * `advice` what an operator should know.
 */
#ifndef POLICY_CHECKS_H
#define POLICY_CHECKS_H

/*     symbol           name                              why it matters
 *                                                        remedy                                  */
/* clang-format off */
#define CHECKS(X)                                                                                  \
	X(KERNEL, "kernel", "the floor is Linux 6.1; only a supported kernel gets fixes",          \
	        "boot a supported kernel of at least 6.1")                                         \
	X(CPU, "cpu vulnerabilities", "jails share processors with the host and each other",       \
	        "update microcode and kernel; do not boot with mitigations=off")                   \
	X(SMT, "smt", "two jails on one core can measure each other",                              \
	        "boot with nosmt where tenants do not trust each other")                           \
	X(SHARES, "processor shares", "without the cpu controller whatever calls setsid has a "    \
	        "share of its own: a fork bomb is bounded by the limit of processes alone",        \
	        "boot with cgroup_no_v1=cpu or systemd.unified_cgroup_hierarchy=1; until then "    \
	        "keep limits.pids small")                                                          \
	X(SWAP, "swap", "what a process holds, secrets too, may be written to the disk",           \
	        "swapoff -a, or encrypt the swap")                                                 \
	X(KSM, "ksm", "merged pages tell one jail what another has in memory",                     \
	        "echo 2 > /sys/kernel/mm/ksm/run")                                                 \
	X(CORE_PATTERN, "kernel.core_pattern", "a pipe starts a parser of the host as root; the "  \
	        "jails' core limit of 1 keeps them out of it", "kernel.core_pattern=core")         \
	X(USERNS, "user.max_user_namespaces", "every jail is one",                                 \
	        "user.max_user_namespaces=10000 or more")                                          \
	X(USERNS_CLONE, "kernel.unprivileged_userns_clone", "anybody on the host may make user "   \
	        "namespaces; agentbox does not need that",                                         \
	        "kernel.unprivileged_userns_clone=0 where nothing else does")                      \
	X(IO_URING, "kernel.io_uring_disabled", "1 leaves io_uring to privileged programs, which " \
	        "is enough for agentbox; 2 stops it", "kernel.io_uring_disabled=1")                \
	X(BPF, "kernel.unprivileged_bpf_disabled", "bpf(2) is refused in jails; this closes it "   \
	        "behind them", "kernel.unprivileged_bpf_disabled=1")                               \
	X(PERF, "kernel.perf_event_paranoid", "perf_event_open(2) is refused in jails; this "      \
	        "closes it behind them", "kernel.perf_event_paranoid=2")                           \
	X(USERFAULTFD, "vm.unprivileged_userfaultfd", "it holds the kernel still in the middle "   \
	        "of an exploit", "vm.unprivileged_userfaultfd=0")                                  \
	X(KPTR, "kernel.kptr_restrict", "addresses of the kernel help who attacks it",             \
	        "kernel.kptr_restrict=1")                                                          \
	X(DMESG, "kernel.dmesg_restrict", "its log has addresses, too", "kernel.dmesg_restrict=1") \
	X(ASLR, "kernel.randomize_va_space", "addresses of programs should not be known",          \
	        "kernel.randomize_va_space=2")                                                     \
	X(YAMA, "kernel.yama.ptrace_scope", "who escapes should not trace others of its user",     \
	        "kernel.yama.ptrace_scope=1")                                                      \
	X(TIOCSTI, "dev.tty.legacy_tiocsti", "typing into a terminal; refused in jails, this "     \
	        "closes it behind them", "dev.tty.legacy_tiocsti=0")                               \
	X(SYMLINKS, "fs.protected_symlinks", "links planted in shared directories of the host",    \
	        "fs.protected_symlinks=1")                                                         \
	X(HARDLINKS, "fs.protected_hardlinks", "hard links to files of others",                    \
	        "fs.protected_hardlinks=1")                                                        \
	X(FIFOS, "fs.protected_fifos", "FIFOs planted in shared directories of the host",          \
	        "fs.protected_fifos=1")                                                            \
	X(REGULAR, "fs.protected_regular", "files planted in shared directories of the host",      \
	        "fs.protected_regular=1")                                                          \
	X(SUID_DUMPABLE, "fs.suid_dumpable", "dumps of programs that changed their ids",           \
	        "fs.suid_dumpable=0")                                                              \
	X(MEMFD, "vm.memfd_noexec", "PID 1 of a jail is executed from a memfd; 2 forbids that",    \
	        "vm.memfd_noexec=1")                                                               \
	X(MODULES, "kernel.modules_disabled", "the kernel loads modules on demand; the filter "    \
	        "keeps jails from the families that do", "blacklist what is not used (algif_aead, "\
	        "esp4, esp6, rxrpc, sctp, dccp, tipc, rds, n_gsm, n_hdlc), or 1 after boot")
/* clang-format on */

enum check {
#define CHECK_ENUM(sym, name, why, remedy) CHECK_##sym,
	CHECKS(CHECK_ENUM)
#undef CHECK_ENUM
	        CHECK_COUNT
};

/*     symbol  name */
#define CHECK_STATES(X)                                                                            \
	X(OK, "ok")                                                                                \
	X(ADVICE, "advice")                                                                        \
	X(BAD, "bad")

enum check_state {
#define CHECK_STATE_ENUM(sym, name) CHECK_##sym,
	CHECK_STATES(CHECK_STATE_ENUM)
#undef CHECK_STATE_ENUM
	        CHECK_STATE_COUNT
};

enum { CHECK_FOUND_MAX = 56 };

const char *check_name(enum check c);
const char *check_why(enum check c);
const char *check_remedy(enum check c);
const char *check_state_name(unsigned state); /* "?" for one that there is not */

#endif
