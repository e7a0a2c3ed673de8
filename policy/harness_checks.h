/*
 * harness_checks.h - what a harness has done around a run: retry, verify,
 * guardrails, pipeline.
 */
#ifndef POLICY_HARNESS_CHECKS_H
#define POLICY_HARNESS_CHECKS_H

#include "policy/keys.h"

/* Rows for struct harness_build, but for those of one step. */
extern const struct key_table harness_retry_keys, harness_verify_keys, harness_guardrail_keys,
        harness_step_keys;
key_set_fn harness_set_pipeline; /* checks the steps; nothing is kept */

#endif
