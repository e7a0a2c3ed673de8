/*
 * runs_private.h - struct runs, shared by runs.c (accept, queue, end),
 * runs_show.c (JSON) and runs_recover.c (what was there before this start).
 */
#ifndef SUPERVISOR_RUNS_PRIVATE_H
#define SUPERVISOR_RUNS_PRIVATE_H

#include "base/list.h"
#include "supervisor/sched.h"

#include <stdbool.h>
#include <stddef.h>

struct daemon;
struct run;

enum { RUNS_BUCKETS = 1024 };

struct runs {
	struct daemon *daemon;            /* borrowed */
	struct list active[RUNS_BUCKETS]; /* run.link, by hash of the id */
	struct sched *sched;              /* owned */
	size_t creating;                  /* on their way to the store */
	bool scheduling, again;
	bool stopping;
	void (*stopped)(void *ctx); /* told once when nothing runs any more */
	void *stopped_ctx;
};

/* Its result is durable: tells, and runs the next. */
void runs_finished(struct run *r);
/* Accepted and not yet ended, or NULL. */
struct run *runs_active(struct runs *rs, const char *id);
void runs_enqueue(struct runs *rs, struct run *r);
void runs_schedule(struct runs *rs);

#endif
