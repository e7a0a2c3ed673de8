/*
 * confine.h - what agentbox-egress gives up before it reads anything.
 *
 * Own ids, no capability, no_new_privs, not dumpable (base/privs.h), and a
 * system call filter: it can talk through sockets of IPv4 and IPv6, and neither
 * open, execute, fork nor listen.
 */
#ifndef EGRESS_CONFINE_H
#define EGRESS_CONFINE_H

#include "base/err.h"

#include <sys/types.h>

/* Everything that needs a file or a privilege is done before. */
MUST_USE int confine_enter(uid_t uid, gid_t gid, struct err *e);

#endif
