/*
 * runner_retry.h - effects of the table: an attempt has failed, the harness
 * says `retry`, and another one comes.
 *
 * The pause before it is outside of any slot; the session stays the run's.  That
 * it waits is in the event log (run.retry) before anything of the attempt is given back, and
 * nowhere else: the next supervisor goes by it.
 */
#ifndef SUPERVISOR_RUNNER_RETRY_H
#define SUPERVISOR_RUNNER_RETRY_H

#include <stdbool.h>

struct run;

/* The run is about to end.  true: another attempt comes instead, and its clients know. */
bool runner_retry_follows(struct run *r);
/* Before it has been told: will one come? */
bool runner_retry_expected(const struct run *r);
/* Drops what belongs to the attempt and not to the run. */
void runner_retry_forget(struct run *r);
void runner_retry_pause(struct run *r); /* until r->retry_ms */
void runner_retry_due(struct run *r);

#endif
