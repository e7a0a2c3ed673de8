/*
 * ahead.h - agents that are started before anybody asks for them: `warm.ahead` of a harness.
 *
 * Each is made as a run's would be, in the jail of a session that is nobody's yet, cut off from the
 * network and told nothing; then it waits with the keeper (keeper.h).  A pair of user and goal that
 * has no session yet gets that one with its first run of the harness.  The id of each such session
 * is a file in <state>/ahead until somebody has it, so that none is left on the disk.
 */
#ifndef SUPERVISOR_AHEAD_H
#define SUPERVISOR_AHEAD_H

struct ahead;
struct daemon;

struct ahead *ahead_new(struct daemon *d, int dirfd); /* dirfd is borrowed for life */
/* Removes what an earlier supervisor left, and begins to make. */
void ahead_begin(struct ahead *a);
/* No more are made. */
void ahead_stop(struct ahead *a);

#endif
