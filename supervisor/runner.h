/*
 * runner.h - makes runs that perform the effects of the table in run.h; the
 * performers are in runner_start.c, runner_work.c and runner_end.c.
 */
#ifndef SUPERVISOR_RUNNER_H
#define SUPERVISOR_RUNNER_H

#include "supervisor/run.h"

#include <stdbool.h>

struct daemon;
struct harness;
struct run;
struct runs;
struct session;

struct runner_spec {
	struct runs *runs;       /* borrowed: for the run's life */
	struct harness *harness; /* takes the reference */
	struct session *session; /* held; given back by `finished` */
	void (*finished)(struct run *r);
	/* It gives its slot back, and keeps its session: it pauses, or is being saved. */
	void (*paused)(struct run *r);
	void (*due)(struct run *r); /* it waits for a slot again */
};
/* Returns owned: by itself once it is stepped, see active.h. */
struct run *runner_new(struct daemon *d, const struct runner_spec *spec);
bool runner_performs(enum run_effect f); /* for the test of the table */

#endif
