/*
 * owner.h - whose a session is: a tenant's user, as one text.
 *
 * "ana" is a user of no tenant, whom clients of the Unix socket name; ana of the
 * tenant acme is "acme", a separator that no name has, and "ana".  The store, the
 * scheduler, accounts and idempotency keys compare owners and nothing else, so users of two
 * tenants with one name are different users everywhere, also to code that
 * knows of no tenants.  API handlers make owners (scope.h) and take them apart again
 * for what they show.
 */
#ifndef SUPERVISOR_OWNER_H
#define SUPERVISOR_OWNER_H

#include "base/err.h"
#include "base/id.h"

struct jw;

enum {
	SESSION_PART_MAX = 256, /* bytes of userId and of goalId, without NUL */
	OWNER_MAX = NAME_MAX_LEN + SESSION_PART_MAX + 1,
};

/* tenant: "" or a checked name.  -EINVAL: no such name, or `user` is too long. */
MUST_USE int owner_make(const char *tenant, const char *user, char ret[OWNER_MAX], struct err *e);
const char *owner_user(const char *owner);                    /* into `owner` */
void owner_tenant(const char *owner, char ret[NAME_MAX_LEN]); /* "": none */
/* Owners of the tenant are those from `from` to below `to`, as bytes compare. */
void owner_range(const char *tenant, char from[NAME_MAX_LEN + 1], char to[NAME_MAX_LEN + 1]);
/* Members tenant (where there is one) and userId. */
void owner_json(struct jw *w, const char *owner);

#endif
