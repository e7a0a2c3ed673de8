#include "policy/scmp.h"
#include "base/fd.h"
#include "policy/arch.h"
#include "policy/syscalls.h"

#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

int scmp_number(const struct arch *arch, const char *name)
{
	int nr = seccomp_syscall_resolve_name_arch(arch->audit, name);
	return nr < 0 ? -1 : nr;
}

char *scmp_name(const struct arch *arch, int nr)
{
	return seccomp_syscall_resolve_num_arch(arch->audit, nr);
}

static struct scmp_arg_cmp compare(const struct syscall_test *t, uint32_t value)
{
	uint64_t high = t->wide ? 0xffffffff00000000u : 0;
	return (struct scmp_arg_cmp){t->arg, SCMP_CMP_MASKED_EQ, high | t->mask, value};
}

/* One rule of libseccomp for each combination of the sets' values. */
static int add_rule(scmp_filter_ctx c, int nr, const struct syscall_rule *r)
{
	struct scmp_arg_cmp args[SYSCALL_TESTS];
	unsigned combinations = 1;
	for (uint8_t i = 0; i < r->n; i++)
		combinations *= r->tests[i].n;
	for (unsigned k = 0; k < combinations; k++) {
		unsigned rest = k;
		for (uint8_t i = 0; i < r->n; i++) {
			args[i] = compare(&r->tests[i], r->tests[i].values[rest % r->tests[i].n]);
			rest /= r->tests[i].n;
		}
		int ret = seccomp_rule_add_array(c, r->verdict, nr, r->n, args);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int add_row(scmp_filter_ctx c, enum scmp_part part, const struct syscall_row *row, int nr,
        uint32_t flags)
{
	uint32_t otherwise = syscalls_otherwise(row, flags);
	if (part == SCMP_PART_ALLOWS) {
		/* Refused but for some: only those are added, the rest takes the default. */
		if (row->nrules == 0 || otherwise == SECCOMP_RET_ALLOW)
			return otherwise == SYSCALLS_DEFAULT
			               ? 0
			               : seccomp_rule_add_array(c, otherwise, nr, 0, NULL);
	} else if (otherwise != SECCOMP_RET_ALLOW) {
		return 0;
	}
	for (size_t i = 0; i < row->nrules; i++) {
		const struct syscall_rule *r = &row->rules[i];
		bool allows = r->verdict == SECCOMP_RET_ALLOW;
		if ((r->unless & flags) || allows != (part == SCMP_PART_ALLOWS))
			continue;
		int ret = add_rule(c, nr, r);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int export(scmp_filter_ctx c, struct sock_filter *insns, size_t max, struct err *e)
{
	auto_close int fd = memfd_create("reference", MFD_CLOEXEC);
	if (fd < 0)
		return err_errno(e, "memfd_create");
	int r = seccomp_export_bpf(c, fd);
	if (r < 0)
		return err_set(e, r, "seccomp_export_bpf");
	off_t size = lseek(fd, 0, SEEK_END);
	if (size < 0 || (size_t)size > max * sizeof(*insns))
		return err_set(e, -E2BIG, "the reference filter has %lld bytes", (long long)size);
	ssize_t n = fd_pread_full(fd, insns, (size_t)size, 0);
	if (n != size)
		return err_set(e, -EIO, "reading the reference filter");
	return (int)((size_t)n / sizeof(*insns));
}

/* Rules are given with the machine's number of a call, or with libseccomp's own where it has none.
 */
static int rule_number(const struct arch *arch, const struct syscall_row *row)
{
	if (arch == arch_native())
		return syscalls_number(row, arch);
	return row->number ? __NR_SCMP_ERROR : seccomp_syscall_resolve_name(row->name);
}

static int set_arch(scmp_filter_ctx c, const struct arch *arch)
{
	if (arch == arch_native())
		return 0;
	int r = seccomp_arch_add(c, arch->audit);
	return r < 0 ? r : seccomp_arch_remove(c, SCMP_ARCH_NATIVE);
}

int scmp_reference(const struct arch *arch, enum scmp_part part, uint32_t flags,
        struct sock_filter *insns, size_t max, struct err *e)
{
	scmp_filter_ctx c = seccomp_init(
	        part == SCMP_PART_ALLOWS ? SYSCALLS_DEFAULT : (uint32_t)SECCOMP_RET_ALLOW);
	if (!c)
		return err_set(e, -ENOMEM, "seccomp_init");
	int r = seccomp_attr_set(c, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (r >= 0)
		r = set_arch(c, arch);
	for (size_t i = 0; r >= 0 && i < syscalls_count(); i++) {
		const struct syscall_row *row = syscalls_row(i);
		int nr = rule_number(arch, row);
		if (syscalls_number(row, arch) >= 0 && nr != __NR_SCMP_ERROR)
			r = add_row(c, part, row, nr, flags);
		if (r < 0)
			(void)err_set(e, r, "libseccomp refuses the rule of %s", row->name);
	}
	if (r >= 0)
		r = export(c, insns, max, e);
	seccomp_release(c);
	return r;
}
