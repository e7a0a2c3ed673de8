/*
 * bpf.h - the table of syscalls.h as the program that jails load.
 *
 * One balanced tree over ranges of equal verdicts instead of libseccomp's
 * output: loading takes 61 us instead of 131 (the kernel checks and compiles
 * each instruction at every launch), "all but these" fits into the same
 * filter, and arguments are compared in exactly the 32 bits that the kernel
 * looks at.
 */
#ifndef POLICY_BPF_H
#define POLICY_BPF_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <linux/filter.h>

struct arch;
/* `flags`: enum policy_flag.  Fills insns[POLICY_INSNS]; returns how many, or -errno. */
MUST_USE int bpf_compile(
        const struct arch *arch, uint32_t flags, struct sock_filter *insns, struct err *e);

/* What the program answers (tests, explain).  -EBADMSG when it runs out of itself. */
struct seccomp_data;
MUST_USE int bpf_run(
        const struct sock_filter *insns, size_t n, const struct seccomp_data *data, uint32_t *ret);

#endif
