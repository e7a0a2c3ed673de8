/*
 * purses.h - what is known on disk of budgets that jails share: told to
 * agentboxd with each jail, written down as agentboxd tells of it.
 */
#ifndef SUPERVISOR_PURSES_H
#define SUPERVISOR_PURSES_H

#include "proto/jail.h"

struct daemon;
struct jw;

/* Of a jail of this policy; session and user may be "". */
MUST_USE int purses_fill(struct daemon *d, const struct policy *p, const char *session,
        const char *user, struct jail_purse *ret, struct err *e);
/* Writes the accounts down and counts what is new. */
void purses_save(struct daemon *d, const struct jail_used *x);

/* What is left of a run's budget: of the policy's, narrowed by `own`. */
struct budget purses_rest(
        const struct policy *p, const struct budget *own, const struct spending *spent);

/* Members for tokens and cost as they were metered: inputTokens, outputTokens, cachedTokens,
 * costUsd where every price is known. */
void purses_usage(struct jw *w, const struct tokens *t, const struct spending *s);

#endif
