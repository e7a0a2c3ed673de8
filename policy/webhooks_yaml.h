/*
 * webhooks_yaml.h - `webhooks` of agentboxd.yaml.
 */
#ifndef POLICY_WEBHOOKS_YAML_H
#define POLICY_WEBHOOKS_YAML_H

#include "policy/keys.h"
#include "policy/policy.h"

extern const struct key_table webhook_keys, hook_keys; /* of an entry */

/* Of what is sent again; fills a struct webhook. */
extern const struct key_table webhook_retry_keys;

/* The whole list. */
MUST_USE int webhooks_set(
        const struct keys_ctx *k, const struct yaml_node *list, struct daemon_config *to);
MUST_USE int hooks_set(
        const struct keys_ctx *k, const struct yaml_node *list, struct daemon_config *to);

#endif
