#include "policy/syscalls.h"
#include "base/fd.h"
#include "base/mem.h"
#include "policy/arch.h"
#include "policy/policy.h"
#include "tests/t.h"

#include <linux/seccomp.h>
#include <sys/syscall.h>

/* "#define __NR3264_fstat 80" and the like: the name and the number, false for other lines. */
static bool header_line(const char *p, char name[64], int *ret)
{
	p += strlen("#define __NR");
	p += strspn(p, "0123456789");
	if (*p++ != '_')
		return false;
	size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789_");
	if (n == 0 || n >= 64 || p[n] != ' ' || p[n + 1] < '0' || p[n + 1] > '9')
		return false;
	snprintf(name, 64, "%.*s", (int)n, p);
	*ret = (int)strtol(p + n, NULL, 10);
	return strcmp(name, "syscalls") != 0;
}

/* The kernel's own list for architectures that came late, aarch64 among them, as this machine's
 * headers have it: what is in both has the same number in both. */
static void generic(void)
{
	const struct arch *arch = arch_find("aarch64");
	auto_free char *text = NULL;
	size_t n = 0, same = 0;
	must(file_slurp("/usr/include/asm-generic/unistd.h", 1 << 20, &text, &n) == 0, "header");
	for (const char *p = text; (p = strstr(p, "#define __NR")) != NULL; p++) {
		char name[64];
		int number;
		if (!header_line(p, name, &number))
			continue;
		const struct syscall_row *row = syscalls_find(name);
		if (!row)
			printf("# in no row: %s\n", name); /* mostly of 32 bits */
		else if (syscalls_number(row, arch) == number)
			same++;
		else
			ok(0, "%s is %d there, not %d", name, number, syscalls_number(row, arch));
	}
	ok(same > 290, "aarch64: %zu numbers are the kernel's", same);
}

/* Our own numbers against the headers of this machine, where those know the call. */
static void numbers(void)
{
	static const struct {
		const char *name;
		int number;
	} known[] = {
#ifdef SYS_futex_waitv
	        {"futex_waitv", SYS_futex_waitv},
#endif
#ifdef SYS_set_mempolicy_home_node
	        {"set_mempolicy_home_node", SYS_set_mempolicy_home_node},
#endif
#ifdef SYS_cachestat
	        {"cachestat", SYS_cachestat},
#endif
#ifdef SYS_fchmodat2
	        {"fchmodat2", SYS_fchmodat2},
#endif
	        {"read", SYS_read},
	        {"openat2", SYS_openat2},
	        {"clone3", SYS_clone3},
	        {"prlimit64", SYS_prlimit64},
	        {"landlock_add_rule", SYS_landlock_add_rule},
	};
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		const struct syscall_row *row = syscalls_find(known[i].name);
		must(row != NULL, "%s is in the table", known[i].name);
		ok(syscalls_number(row, arch_native()) == known[i].number, "%s is %d",
		        known[i].name, known[i].number);
	}
}

static void unique(const struct arch *arch)
{
	size_t twice = 0, unresolved = 0;
	for (size_t i = 0; i < syscalls_count(); i++) {
		int nr = syscalls_number(syscalls_row(i), arch);
		unresolved += nr < 0;
		if (nr > SYSCALL_NR_MAX)
			ok(0, "%s is beyond the tree", syscalls_row(i)->name);
		for (size_t k = 0; k < i; k++)
			if (nr >= 0 && syscalls_number(syscalls_row(k), arch) == nr) {
				printf("# twice: %s\n", syscalls_row(i)->name);
				twice++;
			}
	}
	ok(twice == 0, "%s: no call is there twice", arch->name);
	if (strcmp(arch->name, "x86_64") == 0)
		ok(unresolved == 0, "every name has a number on x86-64");
}

/* The table is security: a change of it must show in the diff of a reviewed file. */
static void golden(const struct arch *arch, const char *file)
{
	auto_buf struct buf got = BUF_INIT(1 << 20);
	for (size_t i = 0; i < syscalls_count(); i++) {
		syscalls_print(syscalls_row(i), arch, 0, &got);
		buf_putc(&got, '\n');
	}
	auto_free char *want = NULL;
	size_t n = 0;
	must(file_slurp(file, 1 << 20, &want, &n) == 0, "%s", file);
	must(got.p != NULL, "there are rows");
	const char *a = got.p, *b = want;
	int line = 1;
	while (*a && *a == *b) {
		line += *a == '\n';
		a++;
		b++;
	}
	if (!ok(*a == *b, "agrees with %s (agentbox-policyc syscalls --arch %s)", file, arch->name))
		printf("# first difference in line %d\n", line);
}

int main(void)
{
	numbers();
	for (const struct arch *a = arches; a->name; a++)
		unique(a);
	golden(arch_find("x86_64"), "tests/fixtures/policy/syscalls.golden");
	golden(arch_find("aarch64"), "tests/fixtures/policy/syscalls-aarch64.golden");
	generic();
	const struct syscall_row *ptrace = syscalls_find("ptrace");
	ok(syscalls_otherwise(ptrace, POLICY_DEBUG) == SECCOMP_RET_ALLOW, "debug allows ptrace");
	is_str(verdict_text(syscalls_otherwise(ptrace, 0)), "EPERM", "EPERM without it");
	ok(syscalls_by_number(100000, arch_native()) == NULL && syscalls_find("nope") == NULL,
	        "unknown ones");
	return done();
}
