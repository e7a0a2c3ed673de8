/*
 * runs_private.h - struct runs, shared by runs.c (accept, queue, end),
 * runs_show.c (JSON) and runs_recover.c (what was there before this start).
 */
#ifndef SUPERVISOR_RUNS_PRIVATE_H
#define SUPERVISOR_RUNS_PRIVATE_H

#include "base/err.h"
#include "base/id.h"
#include "base/list.h"
#include "supervisor/sched.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct daemon;
struct harness;
struct run;
struct session;

enum { RUNS_BUCKETS = 1024 };

struct runs {
	struct daemon *daemon;            /* borrowed */
	struct list active[RUNS_BUCKETS]; /* run.link, by hash of the id */
	struct sched *sched;              /* owned */
	size_t creating;                  /* on their way to the store */
	bool scheduling, again;
	bool stopping;
	bool held;                  /* a handover: nothing new is begun */
	struct list left;           /* jails of another supervisor's runs (runs_adopt.c) */
	void (*stopped)(void *ctx); /* told once when nothing runs any more */
	void *stopped_ctx;
};

/* Its result is durable: tells, and runs the next. */
void runs_finished(struct run *r);
/* Accepted and not yet ended, or NULL. */
struct run *runs_active(struct runs *rs, const char *id);
void runs_enqueue(struct runs *rs, struct run *r);
void runs_schedule(struct runs *rs);
void runs_take_limits(struct runs *rs);

/* ---- what another supervisor left ---- */

struct unfinished {
	char id[ID_MAX], session[ID_MAX], harness[NAME_MAX_LEN];
	char *user, *goal, *prompt, *params; /* owned */
	size_t prompt_len;
	int priority;
	int64_t created_ms, started_ms; /* wall; 0: not started */
	uint64_t from_seq;
	bool running;
};

/* Goes on with the run if a jail of it is left: 1; 0: there is none with its program in it; or
 * -errno: it cannot go on, and why. */
MUST_USE int runs_adopt(struct runs *rs, struct unfinished *f, struct err *e);
/* The jails that are not taken by now go; until then nothing of their sessions runs. */
void runs_adopt_rest(struct runs *rs);
/* A run as it was accepted; its session is held.  Takes the harness and the texts of `f`. */
struct run *runs_revive(
        struct runs *rs, struct unfinished *f, struct harness *h, struct session *x);

#endif
