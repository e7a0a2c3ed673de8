/*
 * scmp.h - libseccomp, for what it is best at: names of system calls, and a
 * second opinion on the filter.
 *
 * The one user of libseccomp.  Its filter is not what jails load (bpf.h says
 * why); the tests compile the same table with it and compare the verdicts.
 */
#ifndef POLICY_SCMP_H
#define POLICY_SCMP_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <linux/filter.h>

struct arch;
/* Number on the architecture, or -1. */
int scmp_number(const struct arch *arch, const char *name);
/* The name of a number there, owned by the caller; NULL: it knows none. */
char *scmp_name(const struct arch *arch, int nr);

/* libseccomp has one verdict for "no rule holds" of a whole filter, so that "all but these" takes
 * a second one.  Both are loaded; the kernel takes the stricter verdict. */
enum scmp_part {
	SCMP_PART_ALLOWS,  /* what is allowed, else ENOSYS */
	SCMP_PART_REFUSES, /* what is refused among the allowed, else allow */
};

/* Fills insns[max]; returns how many, or -errno.  For another architecture than the machine's,
 * calls that libseccomp does not know (syscall_row.number) are not in it. */
MUST_USE int scmp_reference(const struct arch *arch, enum scmp_part part, uint32_t flags,
        struct sock_filter *insns, size_t max, struct err *e);

#endif
