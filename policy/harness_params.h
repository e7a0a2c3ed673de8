/*
 * harness_params.h - the parameters of a harness: what its runs may be given by
 * name, and what stands for {{name}} in its texts.
 *
 * A harness that declares `params` takes these alone.  One that declares none
 * takes what stands in a text of the run.  A value is text in a prompt: it is
 * never part of a command line.
 */
#ifndef POLICY_HARNESS_PARAMS_H
#define POLICY_HARNESS_PARAMS_H

#include "policy/harness.h"
#include "policy/keys.h"

#include <stdbool.h>
#include <stddef.h>

enum { HARNESS_PARAMS_MAX = 32, HARNESS_PARAM_VALUE = 4096 /* of one with a pattern, bytes */ };

extern const struct key_table harness_param_keys; /* of one of them */
key_set_fn harness_set_params;
/* Remarks on texts of the harness that ask for what it does not declare. */
void harness_params_note(const struct keys_ctx *k, const struct harness *h);

/* NULL: it declares none of this name. */
const struct harness_param *harness_param(const struct harness *h, const char *name);
/* Does the text have {{name}}? */
bool harness_text_has(const char *text, size_t n, const char *name);
/* "params.NAME: ..." where it may not be the value. */
MUST_USE int harness_param_fits(const struct harness_param *p, const char *value, struct err *e);
/* May a run with this prompt be given them?  0, or -EINVAL with "params.NAME: ...". */
MUST_USE int harness_params_check(const struct harness *h, const char *prompt, size_t prompt_len,
        const char *const *names, const char *const *values, size_t n, struct err *e);

void harness_params_free(struct harness_param *p, size_t n);

#endif
