#include "base/sandbox.h"
#include "base/mem.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { INSNS_MAX = 1024, X32_BIT = 0x40000000 };

struct program {
	struct sock_filter insns[INSNS_MAX];
	size_t len;
};

static void emit(struct program *p, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	if (p->len < INSNS_MAX)
		p->insns[p->len] = (struct sock_filter){code, jt, jf, k};
	p->len++;
}

static void emit_load(struct program *p, size_t offset)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void emit_return(struct program *p, uint32_t action)
{
	emit(p, BPF_RET | BPF_K, action, 0, 0);
}

static void emit_arg(struct program *p, const struct sandbox_arg *a, uint32_t deny)
{
	/* not this call: skip load + nvalues tests of two instructions each + the final deny */
	size_t body = 2 + 2 * a->nvalues;
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)a->nr, 0, (uint8_t)body);
	emit_load(p, offsetof(struct seccomp_data, args) + sizeof(uint64_t) * a->arg);
	for (size_t i = 0; i < a->nvalues; i++) {
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, a->values[i], 0, 1);
		emit_return(p, SECCOMP_RET_ALLOW);
	}
	emit_return(p, deny);
}

static void emit_allowed(struct program *p, const int *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1);
		emit_return(p, SECCOMP_RET_ALLOW);
	}
}

#ifdef SANITIZED
/* What the sanitizers' runtimes call by themselves: shadow memory, a thread's stack and signals,
 * the end. */
static const int sanitizers[] = {SYS_mmap, SYS_munmap, SYS_mprotect, SYS_madvise, SYS_sigaltstack,
        SYS_futex, SYS_sched_yield, SYS_sched_getaffinity, SYS_getpid, SYS_gettid,
        SYS_clock_gettime, SYS_exit};
#endif

static void build(struct program *p, const int *allowed, size_t n, const struct sandbox_arg *args,
        size_t nargs, uint32_t deny)
{
	emit_load(p, offsetof(struct seccomp_data, arch));
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	emit_return(p, SECCOMP_RET_KILL_PROCESS);
	emit_load(p, offsetof(struct seccomp_data, nr));
	emit(p, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
	emit_return(p, SECCOMP_RET_KILL_PROCESS);
	emit_allowed(p, allowed, n);
#ifdef SANITIZED
	emit_allowed(p, sanitizers, ARRAY_LEN(sanitizers));
#endif
	/* Each argument rule ends in a return, so the accumulator still holds nr here. */
	for (size_t i = 0; i < nargs; i++)
		emit_arg(p, &args[i], deny);
	emit_return(p, deny);
}

int sandbox_enter(const int *allowed, size_t n, const struct sandbox_arg *args, size_t nargs,
        enum sandbox_deny deny, struct err *e)
{
	for (size_t i = 0; i < nargs; i++)
		if (args[i].nvalues > 120 || args[i].arg > 5)
			return err_set(e, -EINVAL, "argument rule %zu is out of range", i);
	struct program p = {.len = 0};
	build(&p, allowed, n, args, nargs,
	        deny == SANDBOX_DENY_KILL ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM);
	if (p.len > INSNS_MAX)
		return err_set(e, -E2BIG, "filter has %zu instructions", p.len);
	struct sock_fprog prog = {.len = (unsigned short)p.len, .filter = p.insns};
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog) != 0)
		return err_errno(e, "installing the system call filter");
	return 0;
}

#ifdef SANITIZED
/* At exit leaks are looked for by a traced clone, which no filter of ours allows: the exit code
 * would say that the program has failed. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif
