/*
 * active.h - one run in memory: what is known of it, its verdict, its events,
 * its steps through the table of run.h.
 *
 * Made and put to work by runner.h; the effects of the table are performed by
 * runner_*.c, which feed back with active_step what came of them.  It ends when it
 * is DONE and nothing of it is in flight.
 */
#ifndef SUPERVISOR_ACTIVE_H
#define SUPERVISOR_ACTIVE_H

#include "base/buf.h"
#include "base/list.h"
#include "policy/harness_steps.h"
#include "supervisor/artifacts.h"
#include "supervisor/attempts.h"
#include "supervisor/asks.h"
#include "supervisor/checkout.h"
#include "supervisor/egress_totals.h"
#include "supervisor/jails.h"
#include "supervisor/enforce.h"
#include "supervisor/loop.h"
#include "supervisor/plan.h"
#include "supervisor/pump.h"
#include "supervisor/resume.h"
#include "supervisor/run.h"
#include "supervisor/sched.h"
#include "supervisor/sessions.h"
#include "supervisor/stats.h"

struct guard;
struct journal;
struct kept;
struct runs;
struct said;
struct seed;
struct veil;
struct veiled;
struct verify;

/* What its agent says, each of them in pieces, and what comes whole. */
enum active_voice { VOICE_MESSAGE, VOICE_THINKING, VOICE_RAW, VOICE_WHOLE, VOICES };

enum { ACTIVE_STDERR_TAIL = 4000 /* bytes of stderr in the result of a run that failed */ };

/* A run of an earlier supervisor: what agentboxd and the log know of it. */
struct adopted {
	struct jail_found jail;
	struct buf limits; /* "NAME\n" for each limit.hit in the log */
};

struct run {
	struct list link;                      /* in runs.active[] */
	struct daemon *d;                      /* borrowed */
	struct runs *runs;                     /* borrowed */
	void (*const *perform)(struct run *r); /* by effect */
	void (*finished)(struct run *r);       /* its result is durable: tell, run the next */
	void (*paused)(struct run *r);         /* see runner.h */
	void (*due)(struct run *r);
	char id[ID_MAX];
	struct session *session; /* held */
	struct harness *harness; /* reference */
	struct sched_job job;
	char *prompt; /* owned; as given */
	size_t prompt_len;
	char *params;        /* owned: JSON object, or NULL */
	char *trace;         /* owned: the one that it came with (trace.h), or NULL */
	char parent[ID_MAX]; /* the pipeline whose step it is, "": none */
	unsigned step;       /* which, from 1 */
	uint64_t from_seq;
	int64_t created_ms;                     /* wall clock */
	int64_t queued_us, slot_us, started_us; /* monotonic; 0: not yet */
	int64_t waits_us;                       /* likewise: since when it waits for a slot */
	int64_t over_us;                        /* likewise: when limits.totalMs is; 0: never */
	size_t position;                        /* in the queue, as it was told last */
	int64_t deadline_us;                    /* likewise: when its time is over; 0: not known */
	bool timed;                             /* `deadline` ends it then */

	enum run_state state;
	enum run_event events[4]; /* posted while one is being performed */
	size_t nevents;
	bool stepping;

	unsigned attempt;     /* from 1 */
	bool begins_attempt;  /* with its next slot */
	bool slotless;        /* it is being saved, and has given its slot back */
	bool lost;            /* its agent has lost the conversation, and it began anew */
	bool last_attempt;    /* no time is left for another */
	struct attempts past; /* those before this one */
	int64_t retry_ms;     /* wall clock: when the next one may begin */
	bool judged;          /* the verdict stands; the first one wins */
	enum run_status status;
	char *error;   /* owned, or NULL */
	bool told_low; /* of the disk of the state */
	bool log_lost; /* the event log refused: nothing more is appended */

	struct plan plan;
	struct event_sink sink;
	struct resume resume; /* what its agent is told of the runs before */
	bool resume_known;    /* that is decided */
	char *filled;         /* owned: prompt with parameters, behind the context of `resume` */
	char *system_prompt;  /* owned, likewise */
	int exec_fd;          /* owned until the start */
	int fds[3];           /* owned until the pump */
	struct jail_watch watch;
	uint64_t exec;
	uint32_t layers, fallback;
	uint32_t disk;           /* enum jail_disk */
	struct journal *journal; /* owned; NULL: none, then no other supervisor can go on with it */
	struct adopted *adopted; /* owned; NULL: it began here */
	bool replaying;          /* what comes was taken by an earlier supervisor */
	uint64_t muted;          /* events of its agent that are in the log and come once more */
	struct seed *seed;       /* owned */
	struct checkout checkout;
	void (*cloned)(struct run *r); /* what follows its checkout */
	struct pump *pump;             /* owned */
	struct kept *waited; /* owned: the agent that waited for it, until its jail is the run's */
	bool warm;           /* its agent was there before */
	char *live;          /* owned: what its driver is told of that; NULL: a new process */
	char *rests;         /* owned: it has done the run and waits: of driver.rest */
	bool unfit;          /* and has said something since */
	bool dismissed;      /* it may not wait */
	bool stays;          /* it waits for the next run */
	struct jail_resources before; /* what the jail had used when the run began */
	uint64_t memory_bytes;        /* what it held when the run was over */
	int64_t collect_us;           /* monotonic: since when it is collected; 0: not yet */
	struct buf to_stdin;
	struct buf stderr_tail;
	struct asks asks;
	struct enforce enforce;
	bool out_of_turns;         /* its limit of turns has ended it */
	const struct said *saying; /* while the driver is told it, else NULL */
	uint64_t output_bytes;
	bool interrupted, exited, gone;
	struct jail_exited exit;
	struct jail_gone end;
	struct tokens tokens; /* what it has used, as egress metered it: */
	struct spending spent;
	struct tokens former_tokens; /* of that in jails before this one */
	struct spending former_spent;
	struct egress_totals egress;
	struct driver_outcome outcome;
	bool has_outcome;
	struct veiled *veiled;        /* owned; NULL: no secret came into its jail */
	struct guard *voices[VOICES]; /* owned; NULL: not needed yet */
	char rule[32];                /* guardrail that has denied something, or "" */
	bool rule_told;               /* the log has it */
	bool withheld;                /* what was denied is its output */
	struct verify *verify;        /* owned; NULL: nothing was checked */
	struct artifacts *collecting; /* owned by itself until its done() */
	struct guard *looking;        /* owned: through them, or NULL */
	struct artifacts_result kept;
	bool kept_synced;  /* they are on the disk */
	struct buf result; /* JSON */
	uint64_t done_seq; /* of the held run.done, 0: none */
	unsigned tries, save_tries;
	bool unsaved; /* said once, and counted, until it is saved */

	/* Of a pipeline (runs_steps.c): */
	char child[ID_MAX];              /* the run of the latest step, "": none yet */
	uint8_t told[HARNESS_STEPS_MAX]; /* what the log says of each step: bits of runs_steps.c */
	bool adding;                     /* the run of a step is on its way to the store */
	char *steps;                     /* owned: of the result, as JSON */

	unsigned replies;           /* of agentboxd and the store, still to come */
	struct op deadline;         /* the run's time limit */
	struct op ask_timer;        /* until a question has waited long enough */
	struct op timer;            /* of the state: grace, kill again, collection, retry */
	enum run_state timer_state; /* in which it was set */
	int64_t timer_due_ms;
	void (*timer_fn)(struct run *r);
};

/* ---- life ---- */

/* Returns owned, QUEUED.  `perform` is static, one for each effect. */
struct run *active_new(void (*const *perform)(struct run *r));
void active_free(struct run *r);
/* Frees it when it is DONE and nothing of it is in flight; else does nothing. */
void active_settle(struct run *r);

/* ---- the machine ---- */

/* Takes the row for the event, sets the state, performs the effects.  From within an effect: when
 * that is done. */
void active_step(struct run *r, enum run_event v);
/* Calls fn once if the run is still in this state then. */
void active_timer(struct run *r, int64_t ms, void (*fn)(struct run *r));

/* Its time is over then, or no longer counts. */
void active_timed(struct run *r, int64_t due_us);
void active_untimed(struct run *r);
/* When limits.totalMs is over for one that has begun; 0: never. */
int64_t active_over(const struct run *r);

/* ---- what is said of it ---- */

/* Sets the verdict unless there is one.  text may be NULL. */
void active_judge(struct run *r, enum run_status s, const char *text);
/* The verdict "failed" and the event that goes with it. */
void active_fail(struct run *r, const struct err *e);
/* A guardrail denies something of it: the verdict "blocked" and the event that goes with it.  Of
 * its output: that is withheld. */
void active_block(struct run *r, bool output, const char *rule);
void active_emit(struct run *r, enum event_type t, const char *members, size_t n);
/* Nothing more comes from its driver: what it has said is told. */
void active_told(struct run *r);
/* The secrets that are in its jail, and must not be in what is said of it. */
void active_veil(struct run *r, const struct veil *v);
/* Once, whichever supervisor sees it. */
void active_emit_limit(struct run *r, const char *limit, uint64_t value);
/* Likewise, of turns: that is why it failed. */
void active_hit_turns(struct run *r);
/* Likewise, of bytes on the disk: `left` of them were free. */
void active_emit_disk(struct run *r, uint64_t value, uint64_t left);
/* Likewise, of a budget: `scope` says whose. */
void active_emit_budget(struct run *r, const char *limit, const char *scope, double value);
/* Does this event come from the agent's output or from what it was told, so that a replay of the
 * journal brings it again? */
bool active_from_agent(enum event_type t);

#endif
