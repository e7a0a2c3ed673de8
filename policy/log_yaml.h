/*
 * log_yaml.h - `log` of agentboxd.yaml: how all programs that live write their log.
 */
#ifndef POLICY_LOG_YAML_H
#define POLICY_LOG_YAML_H

#include "policy/keys.h"
#include "policy/policy.h"

extern const struct key_table log_keys; /* fills a struct daemon_config */

#endif
