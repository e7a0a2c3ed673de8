/*
 * bucket_yaml.h - `artifacts` of agentboxd.yaml.
 */
#ifndef POLICY_BUCKET_YAML_H
#define POLICY_BUCKET_YAML_H

#include "policy/keys.h"
#include "policy/policy.h"

extern const struct key_table artifacts_keys; /* of a struct bucket */

/* What no row can see alone.  `map` may be NULL: there is none. */
MUST_USE int bucket_fits(
        const struct keys_ctx *k, const struct yaml_node *map, const struct bucket *b);

#endif
