/*
 * policy_yaml.h - one policy file, as text, into one struct policy.
 *
 * A policy of root's starts from the built-in that `extends` names (`default`
 * where it names none) and changes what it mentions; lists are replaced
 * whole.  What comes out has passed policy_check, filter included.
 */
#ifndef POLICY_POLICY_YAML_H
#define POLICY_POLICY_YAML_H

#include "policy/keys.h"
#include "policy/policy.h"

extern const struct key_table policy_keys;

/* `k` has file, error and notes.  `name` is the policy's name (name_valid is checked). */
MUST_USE int policy_parse(
        const struct keys_ctx *k, const char *name, const char *text, size_t n, struct policy *ret);
/* The built-in of that index (builtin.h). */
MUST_USE int policy_builtin(int index, struct policy *ret, struct err *e);

#endif
