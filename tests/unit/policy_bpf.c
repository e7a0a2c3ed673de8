#include "policy/bpf.h"
#include "base/mem.h"
#include "policy/arch.h"
#include "policy/policy.h"
#include "policy/scmp.h"
#include "policy/syscalls.h"
#include "tests/t.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Three readings of one table must agree: the table evaluated in C, our program, and what
 * libseccomp makes of it (in two filters, of which the stricter verdict counts). */

enum { REFERENCE_MAX = 4096, NR_END = 600 };

struct filters {
	const struct arch *arch;
	struct sock_filter own[POLICY_INSNS], allows[REFERENCE_MAX], refuses[REFERENCE_MAX];
	int nown, nallows, nrefuses;
};

static void compile(const struct arch *arch, uint32_t flags, struct filters *f)
{
	struct err e = {0};
	f->arch = arch;
	f->nown = bpf_compile(arch, flags, f->own, &e);
	must(f->nown > 0, "compiles: %s", e.text);
	f->nallows = scmp_reference(arch, SCMP_PART_ALLOWS, flags, f->allows, REFERENCE_MAX, &e);
	must(f->nallows > 0, "reference of what is allowed: %s", e.text);
	f->nrefuses = scmp_reference(arch, SCMP_PART_REFUSES, flags, f->refuses, REFERENCE_MAX, &e);
	must(f->nrefuses > 0, "reference of what is refused: %s", e.text);
	ok(f->nown < 256, "%s, flags %u: %d instructions (reference: %d)", arch->name, flags,
	        f->nown, f->nallows + f->nrefuses);
}

static uint32_t run(const struct sock_filter *p, int n, const struct seccomp_data *d)
{
	uint32_t verdict = 0xdead;
	if (bpf_run(p, (size_t)n, d, &verdict) < 0)
		return 0xdead;
	return verdict;
}

/* As the kernel combines them: the lower action is the stricter, signed. */
static uint32_t reference(const struct filters *f, const struct seccomp_data *d)
{
	uint32_t a = run(f->allows, f->nallows, d), b = run(f->refuses, f->nrefuses, d);
	int32_t aa = (int32_t)(a & SECCOMP_RET_ACTION_FULL);
	int32_t bb = (int32_t)(b & SECCOMP_RET_ACTION_FULL);
	return bb <= aa ? b : a;
}

static unsigned long compared, faults;

static void compare(const struct filters *f, const struct syscall_row *row, uint32_t flags,
        const struct seccomp_data *d)
{
	uint64_t args[6];
	memcpy(args, d->args, sizeof(args));
	uint32_t table = syscalls_verdict(row, args, flags);
	uint32_t own = run(f->own, f->nown, d), other = reference(f, d);
	/* Where all but some is refused, libseccomp has its default errno for the rest. */
	bool some = row && row->nrules && syscalls_otherwise(row, flags) != SECCOMP_RET_ALLOW;
	bool same = some && own != SECCOMP_RET_ALLOW ? other != SECCOMP_RET_ALLOW : own == other;
	/* What libseccomp does not know it cannot say for another machine. */
	if (row && row->number && f->arch != arch_native())
		same = true;
	compared++;
	if (own == table && same)
		return;
	if (faults++ < 20)
		printf("# nr %d (%s) args %llx %llx %llx %llx: own %x table %x reference %x\n",
		        d->nr, row ? row->name : "?", (unsigned long long)d->args[0],
		        (unsigned long long)d->args[1], (unsigned long long)d->args[2],
		        (unsigned long long)d->args[3], own, table, other);
}

/* Values near every constant of the rules, with and without a high half. */
static const uint64_t points[] = {0, 1, 2, 3, 5, 6, 8, 9, 10, 15, 16, 17, 19, 26, 31, 35, 41, 50,
        51, 52, 64, 65, 80, 100, 132, 0x28, 0x80, 0x5411, 0x5412, 0x5413, 0x541c, 0x541d, 0x5423,
        0x5424, 0x20000, 0x20008, 0x40000, 0x400000, 0x80002, 0x800, 0x80801, 0x10000000,
        0x10000011, 0x02000000, 0x7e020000, 0x01200011, 0x003d0f00, 0xffffffff, 0x7fffffff,
        0x80000000, 0x100000000, 0x100000001, 0x100000002, 0x100000010, 0x100000028, 0x100005412,
        0xffffffff00000000, 0xffffffff00005412, 0xffffffffffffffff};

static void sweep(const struct arch *arch, uint32_t flags)
{
	auto_free struct filters *f = xnew(struct filters);
	compile(arch, flags, f);
	compared = faults = 0;
	for (int nr = 0; nr < NR_END; nr++) {
		const struct syscall_row *row = syscalls_by_number(nr, arch);
		struct seccomp_data d = {.nr = nr, .arch = arch->audit};
		if (!row || !row->nrules) {
			for (size_t i = 0; i < ARRAY_LEN(points); i++) {
				for (int a = 0; a < 6; a++)
					d.args[a] = points[i];
				compare(f, row, flags, &d);
			}
			continue;
		}
		for (size_t i = 0; i < ARRAY_LEN(points); i++)
			for (size_t j = 0; j < ARRAY_LEN(points); j++)
				for (size_t k = 0; k < ARRAY_LEN(points); k++) {
					d.args[0] = points[i];
					d.args[1] = points[j];
					d.args[2] = points[k];
					d.args[3] = points[(i + j + k) % ARRAY_LEN(points)];
					compare(f, row, flags, &d);
				}
	}
	ok(faults == 0, "%s, flags %u: %lu verdicts agree", arch->name, flags, compared);
}

static void foreign(const struct arch *arch)
{
	auto_free struct filters *f = xnew(struct filters);
	compile(arch, 0, f);
	struct seccomp_data d = {
	        .nr = syscalls_number(syscalls_find("read"), arch), .arch = arch->audit};
	ok(run(f->own, f->nown, &d) == SECCOMP_RET_ALLOW, "read(2) of %s", arch->name);
	static const uint32_t others[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_PPC64,
	        AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64, 0, UINT32_MAX};
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		d.arch = others[i];
		ok(d.arch == arch->audit || run(f->own, f->nown, &d) == SECCOMP_RET_KILL_PROCESS,
		        "%s: arch %x is killed", arch->name, others[i]);
	}
	d.arch = arch->audit;
	static const uint32_t numbers[] = {0x40000000, 0x40000001, 0x7fffffff, 0xffffffff};
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		d.nr = (int)numbers[i];
		ok(run(f->own, f->nown, &d) == SECCOMP_RET_KILL_PROCESS, "number %x is killed",
		        numbers[i]);
	}
	d.nr = 0x3fffffff;
	ok(run(f->own, f->nown, &d) == SYSCALLS_DEFAULT, "an unknown number gets ENOSYS");
}

/* What PID 1 of a jail calls under the same filter (proto/init.h, jail/init.c). */
static void init_works(const struct arch *arch)
{
	static const struct {
		const char *name;
		uint64_t args[6];
	} calls[] = {{"recvmsg", {3, 0, 0x40000000}}, {"sendmsg", {3, 0, 0x4000}}, {"vfork", {0}},
	        {"clone", {0x4111}}, {"execve", {0}}, {"execveat", {0}}, {"wait4", {0}},
	        {"kill", {-1ull, 9}}, {"setresuid", {0}}, {"setresgid", {0}}, {"setgroups", {0}},
	        {"prctl", {0}}, {"capset", {0}}, {"dup2", {0}}, {"dup3", {0}},
	        {"close_range", {3, ~0u}}, {"mmap", {0}}, {"munmap", {0}}, {"ioctl", {0, 0x540e}},
	        {"setsid", {0}}, {"chdir", {0}}, {"prlimit64", {0, 6, 1}}, {"exit_group", {0}},
	        {"signalfd4", {0}}, {"ppoll", {0}}, {"poll", {0}}, {"setpgid", {0}},
	        {"rt_sigaction", {0}}, {"rt_sigprocmask", {0}}, {"rt_sigreturn", {0}},
	        {"close", {0}}, {"read", {0}}, {"write", {0}}, {"fchmod", {0}}, {"mknod", {0}}};
	auto_free struct filters *f = xnew(struct filters);
	compile(arch, POLICY_NO_UNIX_SOCKETS, f);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		const struct syscall_row *row = syscalls_find(calls[i].name);
		must(row != NULL, "%s is in the table", calls[i].name);
		struct seccomp_data d = {.nr = syscalls_number(row, arch), .arch = arch->audit};
		if (d.nr < 0) /* libc takes another one there */
			continue;
		memcpy(d.args, calls[i].args, sizeof(d.args));
		ok(run(f->own, f->nown, &d) == SECCOMP_RET_ALLOW, "%s: PID 1 may call %s",
		        arch->name, calls[i].name);
	}
}

/* Loaded for real: the kernel takes the program and gives the errnos. */
static int inside(struct filters *f)
{
	const struct sock_fprog prog = {(unsigned short)f->nown, f->own};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog) !=
	                0)
		return 1;
	if (syscall(SYS_socket, 0x100000028ul, 1, 0) != -1 || errno != EAFNOSUPPORT)
		return 2;
	if (syscall(SYS_socket, 2, 1, 262) != -1 || errno != EPROTONOSUPPORT)
		return 3;
	if (syscall(SYS_unshare, CLONE_NEWUSER) != -1 || errno != EPERM)
		return 4;
	if (syscall(SYS_clone3, NULL, 0) != -1 || errno != ENOSYS)
		return 5;
	if (syscall(SYS_ioctl, 0, 0x100005412ul, "x") != -1 || errno != EPERM)
		return 6;
	if (syscall(SYS_tee, 0, 1, 1, 0) != -1 || errno != EINVAL)
		return 7;
	if (syscall(999) != -1 || errno != ENOSYS)
		return 8;
	int fd = (int)syscall(SYS_socket, 1, 1, 0);
	return fd < 0 ? 9 : 0;
}

static void loaded(void)
{
	auto_free struct filters *f = xnew(struct filters);
	compile(arch_native(), 0, f);
	pid_t pid = fork();
	if (pid == 0)
		_exit(inside(f));
	int status = 0;
	must(waitpid(pid, &status, 0) == pid, "the child ends");
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the kernel decides as planned (step %d)",
	        WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

int main(void)
{
	static const uint32_t switches[] = {
	        0, POLICY_DEBUG, POLICY_NO_UNIX_SOCKETS, POLICY_DEBUG | POLICY_NO_UNIX_SOCKETS};
	for (const struct arch *a = arches; a->name; a++) {
		for (size_t i = 0; i < ARRAY_LEN(switches); i++)
			if (a == arch_native() || i % 3 == 0) /* of others: none and all */
				sweep(a, switches[i]);
		foreign(a);
		init_works(a);
	}
	loaded();
	return done();
}
