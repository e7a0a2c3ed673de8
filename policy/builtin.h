/*
 * builtin.h - the texts of the built-in policies, policy/builtin/NAME.yaml.
 *
 * They are part of the binary: a host with no file of its own has the same
 * policies that its build was tested with.
 */
#ifndef POLICY_BUILTIN_H
#define POLICY_BUILTIN_H

#include <stddef.h>

struct builtin {
	const char *name;
	const char *text, *end;
};

/* In an order in which each extends only those before it. */
size_t builtin_count(void);
const struct builtin *builtin_at(size_t i);
/* The named groups of hosts (groups.h). */
const struct builtin *builtin_groups(void);
/* What models cost (prices_yaml.h). */
const struct builtin *builtin_prices(void);
int builtin_find(const char *name); /* index, or -1 */

#endif
