/*
 * idents.h - users and groups by name, from the text of /etc/passwd and
 * /etc/group.
 *
 * Not getpwnam: the name service would load modules and open sockets in a
 * process that is about to enter a filter without either.  Whoever keeps users
 * elsewhere gives numbers.  Loaded before the filter, asked after.
 */
#ifndef POLICY_IDENTS_H
#define POLICY_IDENTS_H

#include "base/err.h"

#include <stdint.h>

struct idents {
	char *passwd, *group; /* owned; NULL: file absent */
};

MUST_USE int idents_load(
        struct idents *i, const char *passwd_path, const char *group_path, struct err *e);
void idents_done(struct idents *i);

/* 0, or -ENOENT.  Outputs are written on success. */
MUST_USE int idents_user(
        const struct idents *i, const char *name, uint32_t *ret_uid, uint32_t *ret_gid);
MUST_USE int idents_group(const struct idents *i, const char *name, uint32_t *ret_gid);

#endif
