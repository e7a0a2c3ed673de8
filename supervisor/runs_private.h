/*
 * runs_private.h - struct runs, shared by runs.c (accept, end), runs_queue.c (wait), runs_show.c
 * (JSON) and runs_recover.c (what was there before this start).
 */
#ifndef SUPERVISOR_RUNS_PRIVATE_H
#define SUPERVISOR_RUNS_PRIVATE_H

#include "base/digest.h"
#include "base/err.h"
#include "base/id.h"
#include "base/list.h"
#include "proto/jail.h"
#include "supervisor/loop.h"
#include "supervisor/run.h"
#include "supervisor/sched.h"
#include "supervisor/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct daemon;
struct harness;
struct json;
struct limits;
struct run;
struct run_info;
struct run_request;
struct said;
struct session;

enum { RUNS_BUCKETS = 1024 };

struct runs {
	struct daemon *daemon;            /* borrowed */
	struct list active[RUNS_BUCKETS]; /* run.link, by hash of the id */
	struct sched *sched;              /* owned */
	size_t saving;                    /* have given their slots back, see runner_end_save */
	size_t creating;                  /* on their way to the store */
	struct sched_need host, most;     /* what the host has; what may be promised */
	uint64_t limits_of;               /* generation of the configuration in use */
	uint64_t queue_ms;                /* runs.queue_timeout of it */
	struct op tick;                   /* while runs wait (runs_queue.c) */
	int64_t tick_ms, look_ms;         /* when it comes; when places are looked at */
	bool scheduling, again;
	bool stopping;
	bool held;                  /* a handover: nothing new is begun */
	size_t pipelines;           /* that have begun */
	struct list left;           /* jails of another supervisor's runs (runs_adopt.c) */
	void (*stopped)(void *ctx); /* told once when nothing runs any more */
	void *stopped_ctx;
};

/* On its way to the store. */
struct creation {
	struct runs *runs;
	struct run *run;
	uint64_t claim;
	char *user, *key; /* owned; key may be NULL */
	char *repo;       /* owned: JSON of what is to be checked out, or NULL */
	char hash[DIGEST_TEXT];
	struct store_webhooks webhooks;
	void (*done)(void *ctx, int rc, const struct run_info *info, const struct err *e);
	void *ctx;
};
/* Stores the run, then queues it and calls c->done.  Takes both. */
void runs_submit(struct runs *rs, struct run *r, struct creation *c);
/* Takes the harness; the session is held. */
struct run *runs_new_run(struct runs *rs, struct harness *h, struct session *x);
/* Of the session, where it stands in line. */
struct sched_session *runs_lane(const struct run *r);

/* Its result is durable: tells, and runs the next. */
void runs_finished(struct run *r);
/* It has been told of another attempt. */
void runs_read_retry(struct run *r, const struct json *event);
/* As found: it pauses until r->retry_ms, and its session is its own. */
void runs_pause_again(struct runs *rs, struct run *r);
void runs_paused(struct run *r);
void runs_due(struct run *r);
/* Accepted and not yet ended, or NULL. */
struct run *runs_active(struct runs *rs, const char *id);
/* Its session is held; sched_expect has been called, or it is of an earlier supervisor. */
void runs_enqueue(struct runs *rs, struct run *r);
void runs_learn_host(struct runs *rs);
void runs_take_limits(struct runs *rs);
struct sched_need runs_need(const struct runs *rs, const struct limits *l);
struct sched_ask runs_ask(const struct run *r);
/* What raw logs may take. */
uint64_t runs_journals_most(const struct runs *rs);
/* The oldest raw logs go until they take no more than so many bytes. */
void runs_prune_journals(struct runs *rs, uint64_t most);

/* ---- pipelines: runs_steps.c ---- */

extern void (*const runs_step_effects[RUN_EFFECT_COUNT])(struct run *r); /* by effect */
/* What the harnesses of its steps say of the parameters, and whether they have a use for the
 * prompt. 0 for others. */
MUST_USE int runs_steps_check(
        struct runs *rs, const struct harness *h, const struct run_request *q, struct err *e);
/* A run of one of its steps has ended. */
void runs_step_over(struct runs *rs, const char *pipeline);
/* As runs_say, of a pipeline. */
MUST_USE int runs_step_say(struct run *r, const struct said *s, struct err *e);
/* One that had begun: has its session again.  It goes on with runs_steps_go_on. */
void runs_steps_revive(struct run *r, int64_t started_ms);
void runs_steps_go_on(struct run *r);

/* ---- what another supervisor left ---- */

struct unfinished {
	char id[ID_MAX], session[ID_MAX], harness[NAME_MAX_LEN];
	char parent[ID_MAX];
	unsigned step;
	char *user, *goal, *prompt, *params, *pipeline, *trace; /* owned */
	size_t prompt_len;
	int priority;
	int64_t created_ms, started_ms; /* wall; 0: not started */
	uint64_t from_seq;
	bool running;
	bool pauses; /* between two attempts */
};

/* Goes on with the run if a jail of it is left: 1; 0: there is none with its program in it; or
 * -errno: it cannot go on, and why. */
MUST_USE int runs_adopt(
        struct runs *rs, struct unfinished *f, enum jail_former former, struct err *e);
/* The jails that are not taken by now go; until then nothing of their sessions runs. */
void runs_adopt_rest(struct runs *rs);
/* A run as it was accepted; its session is held.  Takes the harness and the texts of `f`. */
struct run *runs_revive(
        struct runs *rs, struct unfinished *f, struct harness *h, struct session *x);

#endif
