/*
 * allow_yaml.h - `egress.allow`: words, groups and maps become rules.
 */
#ifndef POLICY_ALLOW_YAML_H
#define POLICY_ALLOW_YAML_H

#include "policy/keys.h"

extern const struct key_table allow_keys; /* of an entry that is a map */

/* The whole list, in place of what the policy had. */
MUST_USE int allow_set(const struct keys_ctx *k, const struct yaml_node *n, void *policy);

#endif
