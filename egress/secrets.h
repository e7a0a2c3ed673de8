/*
 * secrets.h - the values of root's secrets, in memory that is never written out.
 *
 * Held in one locked mapping that core dumps leave out; replaced as a whole, so
 * a request sees either the old set or the new one; wiped when replaced.  Values
 * leave this module only into the header of an outgoing request.
 */
#ifndef EGRESS_SECRETS_H
#define EGRESS_SECRETS_H

#include "base/err.h"

#include <stddef.h>

struct secrets; /* opaque */

struct secrets *secrets_new(void);    /* empty; returns owned */
void secrets_free(struct secrets *s); /* wipes; NULL is fine */

/* Takes the array of struct egress_secret in the memfd (borrowed) into use.  On failure the old
 * set stays.  A value with control characters could split a header and is refused by name. */
MUST_USE int secrets_replace(struct secrets *s, int memfd, struct err *e);

/* The value (borrowed: until the next replace), or NULL when it is absent or empty. */
const char *secrets_find(const struct secrets *s, const char *name, size_t *ret_len);

#endif
