/*
 * runner_work.h - effects of the table while the agent lives: its bytes, what
 * its jail tells, the ways to stop it.
 */
#ifndef SUPERVISOR_RUNNER_WORK_H
#define SUPERVISOR_RUNNER_WORK_H

struct pump;
struct run;

void runner_work_watch(struct run *r); /* fills r->watch, before the jail is made */

void runner_work_own(struct run *r, struct pump *p); /* the pump of an agent that waited for it */
void runner_work_pump(struct run *r);
void runner_work_resume(struct run *r);
/* After the resume: what agentboxd has told of its jail before our time, and a verdict that
 * stood. */
void runner_work_catch_up(struct run *r);
/* A handover: nothing more is taken from the agent. */
void runner_work_hold(struct run *r);
/* Its agent stays: its jail is cut off.  Or it may not: its input ends. */
void runner_work_rest(struct run *r);
void runner_work_dismiss(struct run *r);
void runner_work_interrupt(struct run *r);
void runner_work_kill(struct run *r);

#endif
