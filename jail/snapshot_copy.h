/*
 * snapshot_copy.h - the work of the job that makes a snapshot (snapshots.h).
 */
#ifndef JAIL_SNAPSHOT_COPY_H
#define JAIL_SNAPSHOT_COPY_H

#include "base/err.h"
#include "jail/layout.h"
#include "proto/jail.h"

/* For a job that keeps the state's directories.  -EAGAIN: the session's image is mounted still. */
MUST_USE int snapshot_copy(const struct state *s, const struct jail_snapshot_ask *m, struct err *e);

#endif
