/*
 * harness_pairs.h - maps of texts: environments, headers, seed files.
 */
#ifndef POLICY_HARNESS_PAIRS_H
#define POLICY_HARNESS_PAIRS_H

#include "policy/harness.h"
#include "policy/keys.h"

/* Names must be `form` (`want` says so in errors).  *ret is owned. */
MUST_USE int pairs_parse(const struct keys_ctx *k, const struct yaml_node *n,
        struct harness_pair **ret, size_t *ret_n, form_fn *form, const char *want);
void pairs_free(struct harness_pair *p, size_t n);

/* The same as a NULL-terminated list of name, glue, value; a list in *ret is freed first. */
MUST_USE int pairs_list(const struct keys_ctx *k, const struct yaml_node *map, const char *glue,
        form_fn *form, const char *want, char ***ret);

#endif
