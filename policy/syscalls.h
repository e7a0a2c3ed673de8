/*
 * syscalls.h - every system call of the jail's filter, as a table: name,
 * group, what is decided; the knowingly refused ones are listed too.
 *
 * What is not in the table gets ENOSYS: programs have a fallback for a kernel
 * that is older than they are, and none for EPERM.  The table is compiled by
 * bpf.c into the filter that is loaded, and by scmp.c into a reference that
 * the tests compare it with.  syscalls_verdict evaluates the table itself.
 */
#ifndef POLICY_SYSCALLS_H
#define POLICY_SYSCALLS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SYSCALL_TESTS = 3,
	SYSCALL_VALUES = 6,
	SYSCALL_NR_MAX = 1023, /* above every number of the table; x32 begins far above */
};

/* Holds when (argument & mask) is one of the values.  The kernel takes most arguments as int:
 * their high half is not looked at, or 0x1_0000_0028 would pass as something that is not 0x28.
 * `wide`: the kernel takes all 64 bits (a pointer), the high half must be zero as well. */
struct syscall_test {
	uint8_t arg;
	bool wide;
	uint8_t n;
	uint32_t mask;
	uint32_t values[SYSCALL_VALUES];
};

/* All tests hold: this verdict.  Rules are tried in order. */
struct syscall_rule {
	struct syscall_test tests[SYSCALL_TESTS];
	uint8_t n;
	uint32_t verdict; /* SECCOMP_RET_* */
	uint32_t unless;  /* enum policy_flag that switches the rule off, or 0 */
};

enum syscall_group {
	SYSCALLS_FILES,
	SYSCALLS_MEMORY,
	SYSCALLS_PROCESS,
	SYSCALLS_IDS,
	SYSCALLS_LIMITS,
	SYSCALLS_TIME,
	SYSCALLS_POLL,
	SYSCALLS_SOCKETS,
	SYSCALLS_IPC,
	SYSCALLS_TESTED,
	SYSCALLS_TRACE,
	SYSCALLS_HOST,
	SYSCALLS_NUMA,
	SYSCALLS_FALLBACK,
	SYSCALLS_OBSOLETE,
	SYSCALLS_SPLICE,
	SYSCALLS_GROUPS
};

struct syscall_row {
	const char *name;
	int number; /* 0: ask the resolver (no row is read(2) by number) */
	bool x86;   /* and no other architecture has it */
	enum syscall_group group;
	const struct syscall_rule *rules; /* SYSCALLS_TESTED: tried first */
	size_t nrules;
	uint32_t otherwise; /* SYSCALLS_TESTED: when no rule holds */
	const char *why;    /* SYSCALLS_TESTED: reason of this row; NULL: the group's */
};

#define SYSCALLS_DEFAULT (SECCOMP_RET_ERRNO | 38u) /* ENOSYS */

size_t syscalls_count(void);
const struct syscall_row *syscalls_row(size_t i);
const struct syscall_row *syscalls_find(const char *name); /* NULL: not in the table */
struct arch;
const struct syscall_row *syscalls_by_number(int nr, const struct arch *arch);
/* -1: the architecture has no such call. */
int syscalls_number(const struct syscall_row *row, const struct arch *arch);
const char *syscalls_group_name(enum syscall_group g);
const char *syscalls_why(const struct syscall_row *row);

/* The verdict when no rule holds. */
uint32_t syscalls_otherwise(const struct syscall_row *row, uint32_t flags);
/* Index in row->rules of the one that decides, -1: none holds. */
int syscalls_rule(const struct syscall_row *row, const uint64_t args[6], uint32_t flags);
/* NULL row: not in the table. */
uint32_t syscalls_verdict(const struct syscall_row *row, const uint64_t args[6], uint32_t flags);

/* "allow", "EPERM", "kill". */
const char *verdict_text(uint32_t verdict);
/* "[0=0x1, 1&0xf=0x1|0x2] allow". */
void syscalls_print_rule(const struct syscall_rule *r, struct buf *to);
/* One line of the golden table, without newline. */
void syscalls_print(
        const struct syscall_row *row, const struct arch *arch, uint32_t flags, struct buf *to);

#endif
