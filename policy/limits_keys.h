/*
 * limits_keys.h - `limits:` of a policy and `narrow.limits:` of a harness, one table for both.
 */
#ifndef POLICY_LIMITS_KEYS_H
#define POLICY_LIMITS_KEYS_H

#include "policy/keys.h"

extern const struct key_table limits_keys; /* offsets within struct limits */

#endif
