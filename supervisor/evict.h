/*
 * evict.h - how many sessions are ready, and for how long: `sessions` of agentboxd.yaml.
 *
 * Only idle ones are evicted: no run of theirs waits or runs, no command is in them, they are not
 * pinned.  An evicted one is put aside: the agent that waits in it ends, its files stay, and its
 * next run takes it up again; or it is deleted, where root says so.
 */
#ifndef SUPERVISOR_EVICT_H
#define SUPERVISOR_EVICT_H

#include "policy/policy.h"

struct daemon;
struct evict;

/* From here on sessions are counted (sessions_guard). */
struct evict *evict_new(struct daemon *d);
void evict_configure(struct evict *v, const struct session_bounds *bounds);

#endif
