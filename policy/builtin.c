#include "policy/builtin.h"
#include "base/embed.h"
#include "base/mem.h"

#include <string.h>

#define TEXT(name) EMBED(builtin_text_##name, "policy/builtin/" #name ".yaml")

TEXT(default)
TEXT(offline)
TEXT(strict)
TEXT(demo)
TEXT(install)
TEXT(groups)
TEXT(prices)

static const struct builtin builtins[] = {
        {"default", builtin_text_default, builtin_text_default_end},
        {"offline", builtin_text_offline, builtin_text_offline_end},
        {"strict", builtin_text_strict, builtin_text_strict_end},
        {"demo", builtin_text_demo, builtin_text_demo_end},
        {"install", builtin_text_install, builtin_text_install_end},
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
