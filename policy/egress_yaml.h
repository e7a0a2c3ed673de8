/*
 * egress_yaml.h - `egress:` of a policy file: rules, groups, injected hosts,
 * budgets.
 *
 * An entry of `allow` is a word ("registry.example.com", "*.example.com:8443",
 * "@npm") or a map with the same and more.  A group is a list of such words in
 * policy/builtin/groups.yaml; its rules stand where it is named, each with the
 * group's name, so that a refusal or an event can say where it came from.
 */
#ifndef POLICY_EGRESS_YAML_H
#define POLICY_EGRESS_YAML_H

#include "policy/keys.h"
#include "policy/policy.h"

extern const struct key_table egress_keys; /* offsets within struct policy */

/* After the whole file: what is derived from the rules (policy.ports), and what only all entries
 * together can get wrong. */
MUST_USE int egress_settle(
        const struct keys_ctx *k, const struct yaml_node *root, struct policy *p);

/* Keeps the list ascending and each port once.  False: there is no room for another. */
bool ports_add(uint16_t *ports, uint32_t *n, uint32_t max, uint16_t port);

#endif
