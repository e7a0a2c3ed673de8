/*
 * command_yaml.h - a program of root's and its arguments in agentboxd.yaml: a list
 * of texts, the first an absolute path; compiled to one field, each text with its NUL.
 */
#ifndef POLICY_COMMAND_YAML_H
#define POLICY_COMMAND_YAML_H

#include "policy/keys.h"

#include <stddef.h>
#include <stdint.h>

MUST_USE int command_set(const struct keys_ctx *k, const struct yaml_node *n, char *to, size_t size,
        uint32_t *ret_nargs);

#endif
