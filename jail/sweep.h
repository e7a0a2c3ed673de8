/*
 * sweep.h - what a daemon that was killed may have left on the host, cleared
 * at the next start of the same state directory.
 *
 * Processes die with agentboxd; their cgroups are swept by cgroup.h and the
 * trash by sessions.h.  Here: mounts inside the directories of sessions, and
 * loop devices whose file is in the state directory.
 */
#ifndef JAIL_SWEEP_H
#define JAIL_SWEEP_H

#include "base/err.h"

/* `state` is the absolute path of the state directory, which this daemon has locked.  Number of
 * things cleared, or -errno with *e. */
MUST_USE int sweep_mounts(const char *state, struct err *e);
MUST_USE int sweep_loops(const char *state, struct err *e);

/* Name of the daemon's cgroup subtree: the same for the same state directory, another for
 * another.  At least 32 bytes. */
void sweep_tree_name(const char *state, char out[32]);

#endif
