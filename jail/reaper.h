/*
 * reaper.h - children that were killed, until they are gone.
 *
 * SIGKILL waits for a process that waits for a disk; agentboxd does not wait for both.  What
 * such a child works on is its own until then: reaper_holds.
 */
#ifndef JAIL_REAPER_H
#define JAIL_REAPER_H

#include "base/list.h"
#include "jail/child.h"
#include "jail/poller.h"

#include <stdbool.h>

struct reaper {
	struct poller *poller; /* borrowed */
	struct list dying;     /* of its own struct */
	unsigned count;        /* of them */
};

void reaper_init(struct reaper *r, struct poller *p);
/* Takes the child, kills and collects it.  `session`: whose files it works on, "": nobody's.
 * Harmless for one that does not run. */
void reaper_give(struct reaper *r, struct child *c, const char *session);
bool reaper_holds(const struct reaper *r, const char *session);
/* At the end of agentboxd: waits so long for all together, and leaves the rest. */
void reaper_drop(struct reaper *r, int ms);

#endif
