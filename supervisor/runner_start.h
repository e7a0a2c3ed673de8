/*
 * runner_start.h - effects of the table: from a slot to a started agent.
 */
#ifndef SUPERVISOR_RUNNER_START_H
#define SUPERVISOR_RUNNER_START_H

#include "base/err.h"

struct run;

/* For a run that goes on: what it comes down to. */
MUST_USE int runner_start_plan(struct run *r, struct err *e);

void runner_start_make(
        struct run *r); /* the plan, the deadline, the jail; the exec too if it may */
void runner_start_seed(struct run *r);
void runner_start_exec(struct run *r);

#endif
