#include "policy/builtin.h"
#include "base/mem.h"

#include <string.h>

/* .incbin finds the file by the include path, which is the root of the tree; the Makefile knows
 * that this object depends on the texts. */
#define TEXT(name)                                                                                 \
	__asm__(".section .rodata\n"                                                               \
	        "builtin_" #name ": .incbin \"policy/builtin/" #name ".yaml\"\n"                   \
	        "builtin_" #name "_end: .byte 0\n"                                                 \
	        ".previous\n");                                                                    \
	extern const char builtin_##name[] __attribute__((visibility("hidden")));                  \
	extern const char builtin_##name##_end[] __attribute__((visibility("hidden")));

TEXT(default)
TEXT(offline)
TEXT(strict)
TEXT(demo)

static const struct builtin builtins[] = {
        {"default", builtin_default, builtin_default_end},
        {"offline", builtin_offline, builtin_offline_end},
        {"strict", builtin_strict, builtin_strict_end},
        {"demo", builtin_demo, builtin_demo_end},
};

size_t builtin_count(void)
{
	return ARRAY_LEN(builtins);
}

const struct builtin *builtin_at(size_t i)
{
	return &builtins[i];
}

int builtin_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(builtins); i++)
		if (strcmp(builtins[i].name, name) == 0)
			return (int)i;
	return -1;
}
