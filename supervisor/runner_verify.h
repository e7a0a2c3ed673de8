/*
 * runner_verify.h - effects of the table between an agent's end and the artifacts:
 * the harness's check of what it did.
 */
#ifndef SUPERVISOR_RUNNER_VERIFY_H
#define SUPERVISOR_RUNNER_VERIFY_H

struct run;

void runner_verify(struct run *r);
void runner_verify_end(struct run *r); /* the run must not last: ends the check */

#endif
