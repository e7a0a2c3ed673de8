/*
 * state_yaml.h - keys of agentboxd.yaml on the state directory: how much of its
 * disk stays free, and what of the past is kept.
 */
#ifndef POLICY_STATE_YAML_H
#define POLICY_STATE_YAML_H

#include "policy/keys.h"
#include "policy/policy.h"

/* Both fill a struct daemon_config. */
extern const struct key_table state_keys, retention_keys, sessions_keys;

void state_defaults(struct daemon_config *c);

#endif
