/*
 * allow_yaml.h - `egress.allow`: words, groups and maps become rules.
 */
#ifndef POLICY_ALLOW_YAML_H
#define POLICY_ALLOW_YAML_H

#include "policy/keys.h"
#include "policy/rules.h"

extern const struct key_table allow_keys; /* of an entry that is a map */

/* The whole list, in place of what the policy had. */
MUST_USE int allow_set(const struct keys_ctx *k, const struct yaml_node *n, void *policy);

/* A list of addresses and networks; a remark on those that open less than they say. */
MUST_USE int cidrs_set(const struct keys_ctx *k, const struct yaml_node *n,
        struct cidr to[RULE_CIDRS], uint32_t *ret_n);

#endif
