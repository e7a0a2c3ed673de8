/*
 * requests_yaml.h - `requests:` of a rule or an injected host.
 *
 * All of a policy's are one array (policy.requests), each entry has a range of it.
 */
#ifndef POLICY_REQUESTS_YAML_H
#define POLICY_REQUESTS_YAML_H

#include "policy/keys.h"
#include "policy/policy.h"

/* Known to the tables, taken up by requests_add once the entry has its place. */
int requests_set(const struct keys_ctx *k, const struct yaml_node *n, void *obj);
#define REQUESTS_ROW(text)                                                                         \
	{                                                                                          \
		.name = "requests", .type = KEY_OTHER, .set = requests_set,                        \
		.want = "list of METHOD PATH", .doc = (text)                                       \
	}

/* NULL: none are named, which lets all through. */
MUST_USE int requests_add(const struct keys_ctx *k, const struct yaml_node *list, struct policy *p,
        struct request_range *ret);
/* After entries were taken out: the ranges that count are moved together. */
void requests_compact(struct policy *p);

#endif
