/*
 * purses.h - agentboxd's accounts: what egress says was used up, kept for the
 * next egress and passed on in sums to the supervisor, which writes it down.
 *
 * What the supervisor tells of an account, which it may have from before this
 * agentboxd, can only raise it.
 */
#ifndef JAIL_PURSES_H
#define JAIL_PURSES_H

#include "jail/jails.h"
#include "proto/egress.h"

#include <stdbool.h>
#include <stddef.h>

/* A jail is made: the accounts become what the purse says where that is more. */
void purses_told(struct ledger *l, const struct jail_purse *told, const char *session,
        const struct policy *policy);
/* What egress is to know of it; `policy` NULL: it has none any more. */
void purses_fill(struct ledger *l, const struct jail *j, const struct policy *policy,
        struct egress_jail *to);

bool purses_usage_ok(const struct jail_usage *m, size_t n);
bool purses_budget_ok(const struct jail_budget *m, size_t n);
/* `j` NULL: it is not known any more, its accounts are. */
void purses_take(
        struct ledger *l, struct jail *j, const struct jail_usage *m, struct jail_used *ret);
/* What the jail has used so far; false: nothing. */
bool purses_used(const struct jail *j, struct jail_used *ret);

#endif
