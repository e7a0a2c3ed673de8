/*
 * runner_again.h - an effect of the table: a run that begins anew, in a jail of
 * its own, because its agent has lost the conversation that it was told to go on with.
 *
 * Once a run, and only where nothing was done: the agent has refused its first
 * request.  The time of the run goes on.
 */
#ifndef SUPERVISOR_RUNNER_AGAIN_H
#define SUPERVISOR_RUNNER_AGAIN_H

struct run;

void runner_again(struct run *r);

#endif
