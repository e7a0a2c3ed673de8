/*
 * runner_end.h - effects of the table when the jail is dead: the pipes' rest, the
 * artifacts, the result on disk.
 */
#ifndef SUPERVISOR_RUNNER_END_H
#define SUPERVISOR_RUNNER_END_H

struct run;

void runner_end_drain(struct run *r);
void runner_end_driver(struct run *r); /* what it says of the run; once, if it began */
void runner_end_collect(struct run *r);
void runner_end_release(struct run *r);
void runner_end_keep(struct run *r);
void runner_end_save(struct run *r);
void runner_end_finish(struct run *r);

#endif
