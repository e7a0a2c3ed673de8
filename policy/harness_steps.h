/*
 * harness_steps.h - `pipeline` of a harness: other harnesses, run one after the
 * other in one session.
 *
 * Such a harness runs nothing itself: what an agent is told and may do is in the
 * harnesses of its steps.
 */
#ifndef POLICY_HARNESS_STEPS_H
#define POLICY_HARNESS_STEPS_H

#include "policy/harness.h"
#include "policy/keys.h"

enum { HARNESS_STEPS_MAX = 32 };

extern const struct key_table harness_step_keys; /* of one of them */
key_set_fn harness_set_pipeline;
/* What a pipeline may say beside its steps; that others have a backend. */
MUST_USE int harness_fit_steps(
        const struct keys_ctx *k, const struct yaml_node *root, const struct harness *h);

void harness_steps_free(struct harness_step *s, size_t n);

#endif
