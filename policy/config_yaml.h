/*
 * config_yaml.h - agentboxd.yaml, as text, into struct daemon_config.
 *
 * Without a file the defaults hold: numeric ids of base/ids.h, the control
 * socket for group `agentbox` where /etc/group has it and for root otherwise,
 * harnesses from harnesses/ beside the configuration file.
 */
#ifndef POLICY_CONFIG_YAML_H
#define POLICY_CONFIG_YAML_H

#include "policy/idents.h"
#include "policy/keys.h"
#include "policy/policy.h"

extern const struct key_table config_keys;

MUST_USE int config_defaults(const struct idents *ids, struct daemon_config *ret, struct err *e);
/* Starts from the defaults. */
MUST_USE int config_parse(const struct keys_ctx *k, const struct idents *ids, const char *text,
        size_t n, struct daemon_config *ret);

#endif
