/*
 * drain.h - the daemon becomes empty because root wants it to: `abctl drain`.
 *
 * No new run is accepted and no queued one begun; those that run go on to their end, and agents
 * that wait for another run end.  It is kept in the store, so that the next supervisor does the
 * same; a new agentboxd takes runs again.
 */
#ifndef SUPERVISOR_DRAIN_H
#define SUPERVISOR_DRAIN_H

#include "base/err.h"
#include "proto/jail.h"

struct daemon;

/* Once, before runs are taken up: what an earlier supervisor was told still holds. */
MUST_USE int drain_load(struct daemon *d, enum jail_former former, struct err *e);
/* done() once it is durable, or has failed and is as before. */
typedef void drain_done_fn(void *ctx, int rc, const struct err *e);
void drain_set(struct daemon *d, bool on, drain_done_fn *done, void *ctx);

#endif
