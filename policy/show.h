/*
 * show.h - a compiled policy, written out as YAML that compiles to the same.
 */
#ifndef POLICY_SHOW_H
#define POLICY_SHOW_H

#include "policy/policy.h"

#include <stdio.h>

void show_rules(const struct policy *p, FILE *to); /* entries of egress.allow */
void show_policy(const struct policy *p, FILE *to);

#endif
