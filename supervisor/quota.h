/*
 * quota.h - what a session may have on the disk, and what it was seen to have.
 *
 * A session's limits are those of the policy and harness of its latest run: its next one may bring
 * others.  What it has is looked at while a jail has its workspace, and told by the result of the
 * run.
 */
#ifndef SUPERVISOR_QUOTA_H
#define SUPERVISOR_QUOTA_H

#include "policy/policy.h"

struct daemon;
struct jw;

/* That policy (borrowed: for the turn), root's default one where there is none any more, or no run
 * yet; *ret_narrow: how the harness narrows its limits of the disk.  Its index, or -errno. */
MUST_USE int quota_policy(struct daemon *d, const char *session, const struct policy **ret,
        struct limits *ret_narrow, struct err *e);
/* Member "disk" of a session. */
void quota_json(struct daemon *d, const char *session, struct jw *w);

#endif
