/*
 * snapshots.h - snapshots as agentboxd makes, lists and removes them: each a job.
 *
 * A snapshot is a copy of what a session's workspace shows, whatever it stands on itself, so that
 * no chain grows; with reflinks where the file system has them.  It is made by cp, which sees that
 * and the new tree alone and runs as the id that workspaces are stored under.  A session that
 * starts from it copies nothing (merge.h).
 */
#ifndef JAIL_SNAPSHOTS_H
#define JAIL_SNAPSHOTS_H

#include "base/err.h"
#include "proto/jail.h"

#include <stdbool.h>

struct daemon;

void snapshots_init(struct daemon *d);
/* -EINPROGRESS: the reply to `req` comes when it is done. */
MUST_USE int snapshots_begin(
        struct daemon *d, const struct jail_snapshot_ask *m, uint64_t req, struct err *e);
/* One is being made of that session's files. */
bool snapshots_has(const struct daemon *d, const char *session);
/* How many are being made. */
unsigned snapshots_working(const struct daemon *d);
/* Who asked: that supervisor has ended.  What was being made is given up. */
void snapshots_forget(struct daemon *d);
/* Left-overs go; also after each session that was deleted, for it may have been a layer's last. */
void snapshots_sweep(struct daemon *d);
void snapshots_session_gone(struct daemon *d);
void snapshots_done(struct daemon *d);

#endif
