/*
 * Writes the calls of a sweep to stdout, each with what the compiled filter answers: every number
 * with nothing as arguments; every rule's values, their neighbours, and each argument with its
 * high half set; every family, type and protocol of sockets; options and requests.
 *
 * The filter's answer must be the table's own (policy/syscalls.c), or nothing is written.
 */
#include "base/mem.h"
#include "policy/arch.h"
#include "policy/bpf.h"
#include "policy/policy.h"
#include "policy/syscalls.h"
#include "tests/escape/sweep.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <linux/seccomp.h>

#define HIGH (1ull << 32)

static struct sock_filter filter[POLICY_INSNS];
static int nfilter;
static unsigned long faults;

static void put(enum sweep_how how, uint64_t nr, const uint64_t args[6])
{
	struct sweep s = {.nr = nr, .how = how, .verdict = SECCOMP_RET_KILL_PROCESS};
	struct seccomp_data d = {.nr = (int)nr, .arch = arch_native()->audit};
	memcpy(s.args, args, sizeof(s.args));
	memcpy(d.args, args, sizeof(d.args));
	if (how != SWEEP_INT80) {
		uint32_t table =
		        (uint32_t)nr >= 0x40000000u
		                ? SECCOMP_RET_KILL_PROCESS
		                : syscalls_verdict(
		                          syscalls_by_number((int)nr, arch_native()), args, 0);
		if (bpf_run(filter, (size_t)nfilter, &d, &s.verdict) < 0 || s.verdict != table)
			faults++;
	}
	(void)fwrite(&s, sizeof(s), 1, stdout);
}

static void put3(enum sweep_how how, uint64_t nr, uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t args[6] = {a, b, c};
	put(how, nr, args);
}

static void numbers(void)
{
	static const uint64_t none[6];
	static const uint64_t odd[] = {601, 999, 1023, 1024, 4096, 65536, 0x3fffffff, 0x7fffffff,
	        0x80000000, 0xffffffff, 0xffffffffffffffff};
	for (uint64_t nr = 0; nr <= 600; nr++) {
		put(SWEEP_CHILD, nr, none);
		put(SWEEP_CHILD, nr | HIGH, none); /* the kernel takes the low half */
		put(SWEEP_CHILD, nr | 0x40000000, none);
		put(SWEEP_INT80, nr, none);
	}
	for (size_t i = 0; i < ARRAY_LEN(odd); i++)
		put(SWEEP_CHILD, odd[i], none);
}

static void rule(uint64_t nr, const struct syscall_rule *r)
{
	uint64_t base[6] = {0}, args[6];
	for (int t = 0; t < r->n; t++)
		base[r->tests[t].arg] = r->tests[t].values[0];
	put(SWEEP_CHILD, nr, base);
	for (int arg = 0; arg < 6; arg++) {
		memcpy(args, base, sizeof(args));
		args[arg] |= HIGH;
		put(SWEEP_CHILD, nr, args);
	}
	for (int t = 0; t < r->n; t++) {
		const struct syscall_test *test = &r->tests[t];
		memcpy(args, base, sizeof(args));
		for (int v = 0; v < test->n; v++)
			for (uint64_t near = 0; near < 2; near++)
				for (uint64_t high = 0; high < 3; high++) {
					args[test->arg] = (test->values[v] + near) |
					                  (high == 2 ? ~0ull << 32 : high << 32);
					put(SWEEP_CHILD, nr, args);
				}
		for (int bit = 0; bit < 32; bit++) /* of the mask: each by itself */
			if (test->mask != ~0u && test->mask >> bit & 1) {
				args[test->arg] = 1ull << bit;
				put(SWEEP_CHILD, nr, args);
				args[test->arg] |= HIGH;
				put(SWEEP_CHILD, nr, args);
			}
	}
}

static void rules(void)
{
	for (size_t i = 0; i < syscalls_count(); i++) {
		const struct syscall_row *row = syscalls_row(i);
		int nr = syscalls_number(row, arch_native());
		for (size_t k = 0; nr >= 0 && k < row->nrules; k++)
			rule((uint64_t)nr, &row->rules[k]);
	}
}

static void sockets(void)
{
	for (uint64_t family = 0; family <= 50; family++)
		for (uint64_t type = 0; type <= 15; type++)
			for (uint64_t protocol = 0; protocol <= 262; protocol++)
				put3(SWEEP_HERE, SYS_socket, family, type, protocol);
	for (uint64_t family = 0; family <= 50; family++)
		for (uint64_t type = 0; type <= 6; type++)
			for (uint64_t protocol = 0; protocol <= 17; protocol++) {
				put3(SWEEP_HERE, SYS_socket, family | HIGH, type, protocol);
				put3(SWEEP_HERE, SYS_socket, family, type | HIGH, protocol);
				put3(SWEEP_HERE, SYS_socket, family, type, protocol | HIGH);
				put3(SWEEP_HERE, SYS_socket, family, type | 0x80800, protocol);
				put3(SWEEP_HERE, SYS_socket, ~family, type, protocol);
			}
}

/* On a descriptor that is no socket and no terminal: what gets there changes nothing. */
static void options(void)
{
	for (uint64_t level = 0; level <= 300; level++)
		for (uint64_t option = 0; option <= 100; option++)
			put3(SWEEP_HERE, SYS_setsockopt, 0, level, option);
	for (uint64_t level = 0; level <= 41; level++)
		for (uint64_t option = 0; option <= 100; option++) {
			put3(SWEEP_HERE, SYS_setsockopt, 0, level | HIGH, option);
			put3(SWEEP_HERE, SYS_setsockopt, 0, level, option | HIGH);
		}
	for (uint64_t request = 0; request <= 0xff; request++) {
		put3(SWEEP_HERE, SYS_ioctl, 0, 0x5400 | request, 0);
		put3(SWEEP_HERE, SYS_ioctl, 0, 0x8900 | request, 0);
		put3(SWEEP_HERE, SYS_ioctl, 0, 0x5400 | request | HIGH, 0);
		put3(SWEEP_HERE, SYS_ioctl, 0, 0x5400 | request | ~0ull << 32, 0);
	}
}

int main(void)
{
	struct err e;
	nfilter = bpf_compile(arch_native(), 0, filter, &e);
	if (nfilter < 0) {
		(void)fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	numbers();
	rules();
	sockets();
	options();
	(void)fprintf(stderr, "%lu verdicts of the filter are not the table's\n", faults);
	return fflush(stdout) != 0 || faults;
}
