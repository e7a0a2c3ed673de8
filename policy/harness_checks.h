/*
 * harness_checks.h - what a harness has done around a run: retry, verify,
 * guardrails.
 */
#ifndef POLICY_HARNESS_CHECKS_H
#define POLICY_HARNESS_CHECKS_H

#include "policy/keys.h"

/* Rows for struct harness_build. */
extern const struct key_table harness_retry_keys, harness_verify_keys, harness_guardrail_keys;

/* A POSIX extended regular expression that can be borne. */
form_fn form_regex;
#define FORM_REGEX_WANT "an extended regular expression of at most 512 characters"

#endif
