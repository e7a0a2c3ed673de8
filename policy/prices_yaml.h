/*
 * prices_yaml.h - the price table as YAML: a map of model glob to prices.
 *
 * The built-in one (policy/builtin/prices.yaml) is data of the binary, as the built-in policies
 * are; root's `prices` of agentboxd.yaml goes before it.
 */
#ifndef POLICY_PRICES_YAML_H
#define POLICY_PRICES_YAML_H

#include "policy/keys.h"
#include "policy/policy.h"

extern const struct key_table price_keys;

/* Appends the entries of the map. */
MUST_USE int prices_add(
        const struct keys_ctx *k, const struct yaml_node *map, struct daemon_config *to);
/* Appends the built-in ones. */
MUST_USE int prices_builtin(struct daemon_config *to, struct err *e);

#endif
