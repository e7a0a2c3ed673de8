/*
 * sweep.h - one system call with its arguments, and what the filter must make of it.
 *
 * tests/fakes/sweep_table.c writes a file of these from the policy's table; tests/escape/sweep.c
 * makes each of the calls in a jail.
 */
#ifndef TESTS_ESCAPE_SWEEP_H
#define TESTS_ESCAPE_SWEEP_H

#include <stdint.h>

enum sweep_how {
	SWEEP_CHILD, /* in a process of its own */
	SWEEP_HERE,  /* in the sweeping process: sockets, and calls on a descriptor that takes none
	              */
	SWEEP_INT80, /* by the 32-bit door */
};

struct sweep {
	uint64_t nr; /* all of the register */
	uint64_t args[6];
	uint32_t verdict; /* SECCOMP_RET_* */
	uint32_t how;     /* enum sweep_how */
};

#endif
