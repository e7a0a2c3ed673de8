/*
 * retention.h - what of the past is not kept: `retention` of agentboxd.yaml.
 *
 * Runs that have ended long enough ago go, their artifacts and events before them where they are
 * kept for less long; the oldest first, one a turn of the loop.  Never of a session in which a run
 * waits or runs or an agent waits, nor of a pinned one, and never a run that a webhook is still to
 * be told of.  Files go before the record that names them, so a death in between leaves nothing
 * that nobody knows.
 */
#ifndef SUPERVISOR_RETENTION_H
#define SUPERVISOR_RETENTION_H

#include "policy/policy.h"

struct daemon;
struct retention_work;

struct retention_work *retention_new(struct daemon *d);
void retention_configure(struct retention_work *w, const struct retention *keep);

#endif
