/*
 * shares_yaml.h - `runs.shares`, `runs.memory` and `runs.cpus` of agentboxd.yaml.
 */
#ifndef POLICY_SHARES_YAML_H
#define POLICY_SHARES_YAML_H

#include "policy/keys.h"
#include "policy/policy.h"

extern const struct key_table share_keys; /* of an entry */

/* The whole list. */
MUST_USE int shares_set(
        const struct keys_ctx *k, const struct yaml_node *list, struct daemon_config *to);
/* A number of the row's type, or `host`. */
MUST_USE int shares_total(const struct keys_ctx *k, const struct yaml_node *n, enum key_type type,
        uint64_t least, uint64_t *ret);

#endif
