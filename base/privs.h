/*
 * privs.h - giving up root for good, and checking that it is gone.
 *
 * For agentbox-supervisor, agentbox-egress and agentbox-policyc, which start
 * as root, set up what needs it and then call privs_drop once, before they
 * read anything from anyone.
 */
#ifndef BASE_PRIVS_H
#define BASE_PRIVS_H

#include "base/err.h"

#include <sys/types.h>

/* Supplementary groups, gid, uid, all capability sets, the bounding set and ambient set, locked
 * securebits, no_new_privs, dumpable 0, RLIMIT_CORE; a parent-death signal stays armed.  Then
 * everything is read back from the kernel; any difference is an error and the caller must exit. uid
 * and gid must not be 0. */
MUST_USE int privs_drop(uid_t uid, gid_t gid, struct err *e);

#endif
