/*
 * otlp_yaml.h - `otlp` of agentboxd.yaml.
 */
#ifndef POLICY_OTLP_YAML_H
#define POLICY_OTLP_YAML_H

#include "policy/keys.h"
#include "policy/policy.h"

extern const struct key_table otlp_keys; /* fills a struct otlp */

void otlp_defaults(struct otlp *o);
/* What no key says by itself; of the map that was applied. */
MUST_USE int otlp_fits(const struct keys_ctx *k, const struct yaml_node *map, const struct otlp *o);

#endif
