/*
 * guard.h - the rules of a harness's `guardrails`, looked for in one text after
 * the other, each as it comes.  Pure.
 *
 * What cannot be looked at to its end is denied.
 */
#ifndef SUPERVISOR_GUARD_H
#define SUPERVISOR_GUARD_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct guard;
struct harness;

enum guard_at { GUARD_INPUT, GUARD_TEXT, GUARD_ARTIFACTS };

bool guard_any(const struct harness *h, enum guard_at at); /* are there rules for that? */
/* Returns owned; NULL: there are no rules for that. */
struct guard *guard_new(const struct harness *h, enum guard_at at);
void guard_free(struct guard *g); /* NULL is fine */

/* A text in pieces.  True: it is denied, whatever follows. */
void guard_begin(struct guard *g);
MUST_USE bool guard_feed(struct guard *g, const char *p, size_t n);
MUST_USE bool guard_end(struct guard *g);
/* A whole text; false for a guard that is NULL. */
MUST_USE bool guard_denies(struct guard *g, const char *p, size_t n);
/* Which rule has denied the text: "output[0]", or "cost": looking took too long.  Borrowed: until
 * another is begun. */
const char *guard_rule(struct guard *g);

#endif
