#include "policy/builtin.h"
#include "base/mem.h"

#include <string.h>

/* .incbin finds the file by the include path, which is the root of the tree; the Makefile knows
 * that this object depends on the texts. */
#define TEXT(name)                                                                                 \
	__asm__(".section .rodata\n"                                                               \
	        "builtin_text_" #name ": .incbin \"policy/builtin/" #name ".yaml\"\n"              \
	        "builtin_text_" #name "_end: .byte 0\n"                                            \
	        ".previous\n");                                                                    \
	extern const char builtin_text_##name[] __attribute__((visibility("hidden")));             \
	extern const char builtin_text_##name##_end[] __attribute__((visibility("hidden")));

TEXT(default)
TEXT(offline)
TEXT(strict)
TEXT(demo)
TEXT(groups)
TEXT(prices)

static const struct builtin builtins[] = {
        {"default", builtin_text_default, builtin_text_default_end},
        {"offline", builtin_text_offline, builtin_text_offline_end},
        {"strict", builtin_text_strict, builtin_text_strict_end},
        {"demo", builtin_text_demo, builtin_text_demo_end},
};

size_t builtin_count(void)
{
	return ARRAY_LEN(builtins);
}

const struct builtin *builtin_at(size_t i)
{
	return &builtins[i];
}

const struct builtin *builtin_groups(void)
{
	static const struct builtin groups = {
	        "groups", builtin_text_groups, builtin_text_groups_end};
	return &groups;
}

const struct builtin *builtin_prices(void)
{
	static const struct builtin prices = {
	        "prices", builtin_text_prices, builtin_text_prices_end};
	return &prices;
}

int builtin_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(builtins); i++)
		if (strcmp(builtins[i].name, name) == 0)
			return (int)i;
	return -1;
}
