/*
 * explain_host.h - `explain NAME host HOST[:PORT]`: may it be reached, by which
 * rule of which line, and what would allow it.
 */
#ifndef POLICY_EXPLAIN_HOST_H
#define POLICY_EXPLAIN_HOST_H

#include "policy/lookup.h"

/* argv: the words after `host`.  Returns enum policyc_exit. */
int explain_host(const struct lookup *l, int argc, char **argv);
/* "  decided by FILE:LINE: KEY", or `otherwise` where no file has the key. */
void explain_decided(const struct lookup *l, const char *key, const char *otherwise);

#endif
