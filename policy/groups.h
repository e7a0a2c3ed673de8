/*
 * groups.h - the named lists of hosts that a rule can stand for (`@npm`).
 *
 * Data, policy/builtin/groups.yaml, part of the binary as the built-in
 * policies are.
 */
#ifndef POLICY_GROUPS_H
#define POLICY_GROUPS_H

#include "policy/yaml.h"

/* The parsed file: a map of group to { description, allow }.  Owned; NULL with *e. */
struct yaml_doc *groups_parse(struct err *e);
/* `allow` of the group, or NULL. */
const struct yaml_node *groups_allow(const struct yaml_doc *d, const char *name);

#endif
