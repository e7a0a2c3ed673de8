/*
 * listen_yaml.h - `listen` of agentboxd.yaml.
 */
#ifndef POLICY_LISTEN_YAML_H
#define POLICY_LISTEN_YAML_H

#include "policy/keys.h"
#include "policy/policy.h"

extern const struct key_table listen_keys; /* of an entry */

/* The whole list. */
MUST_USE int listen_set(
        const struct keys_ctx *k, const struct yaml_node *list, struct daemon_config *to);

#endif
