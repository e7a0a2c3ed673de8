/*
 * arch.h - the architectures that a filter can be made for.
 *
 * Jails load the one of the machine.  The tables of the others are made and
 * tried on any machine, so that a change cannot forget them.
 */
#ifndef POLICY_ARCH_H
#define POLICY_ARCH_H

#include <stddef.h>
#include <stdint.h>

struct arch {
	const char *name; /* as uname -m has it */
	uint32_t audit;   /* AUDIT_ARCH_*, which is libseccomp's token as well */
};

extern const struct arch arches[]; /* ends with a NULL name */
const struct arch *arch_native(void);
const struct arch *arch_find(const char *name); /* NULL: none of ours */

#endif
