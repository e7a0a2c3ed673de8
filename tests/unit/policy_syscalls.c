#include "policy/syscalls.h"
#include "base/fd.h"
#include "base/mem.h"
#include "policy/policy.h"
#include "tests/t.h"

#include <linux/seccomp.h>
#include <sys/syscall.h>

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
		ok(syscalls_number(row) == known[i].number, "%s is %d", known[i].name,
		        known[i].number);
	}
}

static void unique(void)
{
	size_t twice = 0, unresolved = 0;
	for (size_t i = 0; i < syscalls_count(); i++) {
		int nr = syscalls_number(syscalls_row(i));
		unresolved += nr < 0;
		if (nr > SYSCALL_NR_MAX)
			ok(0, "%s is beyond the tree", syscalls_row(i)->name);
		for (size_t k = 0; k < i; k++)
			if (nr >= 0 && syscalls_number(syscalls_row(k)) == nr) {
				printf("# twice: %s\n", syscalls_row(i)->name);
				twice++;
			}
	}
	ok(twice == 0, "no call is there twice");
	ok(unresolved == 0, "every name has a number on this architecture");
}

/* The table is security: a change of it must show in the diff of a reviewed file. */
static void golden(void)
{
	auto_buf struct buf got = BUF_INIT(1 << 20);
	for (size_t i = 0; i < syscalls_count(); i++) {
		syscalls_print(syscalls_row(i), 0, &got);
		buf_putc(&got, '\n');
	}
	auto_free char *want = NULL;
	size_t n = 0;
	must(file_slurp("tests/fixtures/policy/syscalls.golden", 1 << 20, &want, &n) == 0,
	        "syscalls.golden");
	const char *a = got.p, *b = want;
	int line = 1;
	while (*a && *a == *b) {
		line += *a == '\n';
		a++;
		b++;
	}
	if (!ok(*a == *b, "agrees with syscalls.golden (agentbox-policyc syscalls)"))
		printf("# first difference in line %d\n", line);
}

int main(void)
{
#ifndef __x86_64__
	skip_all("the golden table has the numbers of x86-64");
#endif
	numbers();
	unique();
	golden();
	const struct syscall_row *ptrace = syscalls_find("ptrace");
	ok(syscalls_otherwise(ptrace, POLICY_DEBUG) == SECCOMP_RET_ALLOW, "debug allows ptrace");
	is_str(verdict_text(syscalls_otherwise(ptrace, 0)), "EPERM", "EPERM without it");
	ok(syscalls_by_number(100000) == NULL && syscalls_find("nope") == NULL, "unknown ones");
	return done();
}
