/*
 * runs_steps.h - what runs_steps.c (from step to step), runs_approve.c (may the
 * next one begin?) and runs_steps_sum.c (what they come to) share of a pipeline.
 */
#ifndef SUPERVISOR_RUNS_STEPS_H
#define SUPERVISOR_RUNS_STEPS_H

#include "base/id.h"
#include "supervisor/stats.h"

#include <stdbool.h>

struct json;
struct run;

/* run.told: what the log says of a step. */
enum { TOLD_ASKED = 1, TOLD_ALLOWED = 2, TOLD_DENIED = 4, TOLD_STARTED = 8, TOLD_DONE = 16 };

/* The run of the latest step. */
struct step_latest {
	char id[ID_MAX], status[16];
	unsigned step; /* 0: none yet */
	bool over;
	char *text; /* owned: what it said at last, or NULL */
};

/* ---- runs_steps.c ---- */
/* Does what is next, whatever that is. */
void runs_steps_look(struct run *r);
/* Its verdict; takes `why`, which may be NULL. */
void runs_steps_end(struct run *r, enum run_status status, char *why);
void runs_steps_deny(struct run *r, unsigned step, const char *how);

/* ---- runs_approve.c ---- */
void runs_steps_ask(
        struct run *r, unsigned step, const char *params, const struct step_latest *before);
/* An open question has its time limit. */
void runs_steps_wait(struct run *r);
void runs_steps_give_up(struct run *r);
/* An event of the log, permission.asked or permission.answered. */
void runs_steps_asked_before(struct run *r, const char *type, const struct json *event);

/* ---- runs_steps_sum.c ---- */
void runs_steps_sum(struct run *r); /* an effect: COLLECT */

#endif
