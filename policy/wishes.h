/*
 * wishes.h - what a harness of a pack asks for beyond its jail: root's secrets, policies, variables
 * and the like.  A pack comes from a stranger, and has of these what root granted it by name.
 *
 * A wish is "KIND:VALUE", a grant the same, or "KIND:*" for all of a kind.
 */
#ifndef POLICY_WISHES_H
#define POLICY_WISHES_H

#include "policy/harness.h"

/* Calls fn for each; `line` is where it is said, 1 where it follows from what is not said. */
typedef void wish_fn(void *ctx, int line, const char *wish);
void harness_wishes(const struct harness *h, wish_fn *fn, void *ctx);

/* `grants` may be NULL: none. */
bool wish_granted(const char *wish, char *const *grants);
/* 0, or -EACCES with file, line, what is missing and the remedy. */
MUST_USE int harness_granted(const struct harness *h, char *const *grants, struct err *e);

/* The pack of a file "packs/NAME/...": owned, or NULL: of none. */
char *pack_of_file(const char *file);

#endif
