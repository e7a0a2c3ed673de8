/*
 * runner_repo.h - a run's checkout: brought into the workspace before the agent starts, in the
 * run's own jail; and what has become of it when the agent is dead, in a jail of its own that
 * reaches nothing.
 */
#ifndef SUPERVISOR_RUNNER_REPO_H
#define SUPERVISOR_RUNNER_REPO_H

#include <stdbool.h>

struct run;

/* Is there one to be brought? */
bool runner_repo_clones(const struct run *r);
/* In its jail, which is there.  Calls `next` when it is done and durable; else the run has failed.
 */
void runner_repo_clone(struct run *r, void (*next)(struct run *r));
/* Whatever is being done in a jail is of no use any more. */
void runner_repo_stop(struct run *r);

/* Are there changes to be looked for? */
bool runner_repo_collects(const struct run *r);
/* Notes what the run's result is if nobody comes to know them: its jail, which another supervisor
 * would go on with, is about to go. */
void runner_repo_note(struct run *r);
/* The run's jail is given back.  The event COLLECTED follows, whatever comes of it. */
void runner_repo_collect(struct run *r);

#endif
