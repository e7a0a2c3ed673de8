#include "drivers/ability.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const struct {
	const char *key, *enforced, *what;
} rows[ABILITY_COUNT] = {
#define ABILITY_ROW(sym, name, key, enforced, what) [ABILITY_##sym] = {key, enforced, what},
        ABILITIES(ABILITY_ROW)
#undef ABILITY_ROW
};

static const char *const names[ABILITY_COUNT + 1] = {
#define ABILITY_NAME(sym, name, key, enforced, what) [ABILITY_##sym] = (name),
        ABILITIES(ABILITY_NAME)
#undef ABILITY_NAME
};
_Static_assert(ABILITY_COUNT <= 32, "they are bits of a uint32_t");

const char *ability_name(enum ability a)
{
	return a < ABILITY_COUNT ? names[a] : "unknown";
}

const char *ability_key(enum ability a)
{
	return a < ABILITY_COUNT ? rows[a].key : NULL;
}

const char *ability_enforced(enum ability a)
{
	return a < ABILITY_COUNT ? rows[a].enforced : NULL;
}

const char *ability_what(enum ability a)
{
	return a < ABILITY_COUNT ? rows[a].what : "";
}

int ability_by_name(const char *name)
{
	for (int a = 0; a < ABILITY_COUNT; a++)
		if (strcmp(names[a], name) == 0)
			return a;
	return -1;
}

const char *const *ability_names(void)
{
	return names;
}

int ability_refuse(
        struct err *e, const char *where, const char *agent, enum ability a, const char *remedy)
{
	const char *key = ability_key(a);
	return err_set(e, -ENOEXEC, "%s%s: agent '%.40s' cannot do that (%s); %s", where,
	        key ? key : "", agent, ability_name(a), remedy);
}

const char *ability_word(uint32_t can, enum ability a)
{
	return ability_in(can, a) ? "yes" : ability_enforced(a) ? "enforced" : "no";
}
