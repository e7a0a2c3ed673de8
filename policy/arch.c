#include "policy/arch.h"

#include <linux/audit.h>
#include <string.h>

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#else
#error "no system call filter for this architecture"
#endif

const struct arch arches[] = {
        {"x86_64", AUDIT_ARCH_X86_64},
        {"aarch64", AUDIT_ARCH_AARCH64},
        {NULL, 0},
};

const struct arch *arch_native(void)
{
	const struct arch *a = arches;
	while (a->audit != NATIVE)
		a++;
	return a;
}

const struct arch *arch_find(const char *name)
{
	for (const struct arch *a = arches; a->name; a++)
		if (strcmp(a->name, name) == 0)
			return a;
	return NULL;
}
