/*
 * runner.h - one run, from its slot to its result: performs the effects of the
 * table in run.h and feeds back what came of them.
 *
 * A struct run is made by runs.c, steps through its states here, and is given
 * back through runs_finished when it is DONE and nothing of it is in flight.
 */
#ifndef SUPERVISOR_RUNNER_H
#define SUPERVISOR_RUNNER_H

#include "base/buf.h"
#include "base/list.h"
#include "supervisor/artifacts.h"
#include "supervisor/jails.h"
#include "supervisor/loop.h"
#include "supervisor/plan.h"
#include "supervisor/pump.h"
#include "supervisor/run.h"
#include "supervisor/sched.h"
#include "supervisor/sessions.h"
#include "supervisor/stats.h"

struct runs;
struct seed;

enum {
	RUN_GRACE_MS = 3000,  /* from "please stop" to the kill */
	RUN_REKILL_MS = 5000, /* cgroup.kill is asked for again: it is harmless, silence is not */
	RUN_COLLECT_MS = 120000, /* artifacts: 8 GiB at 70 MB/s */
	RUN_RETRY_MS = 1000,     /* a full disk: the result is tried again */
	RUN_EVENT_TRIES = 30,    /* of writing run.done before the record alone must do */
	RUN_STDERR_TAIL = 4000   /* bytes of stderr in the result of a run that failed */
};

struct run {
	struct list link;  /* in runs.active[] */
	struct daemon *d;  /* borrowed */
	struct runs *runs; /* borrowed */
	char id[ID_MAX];
	struct session *session; /* held */
	struct harness *harness; /* reference */
	struct sched_job job;
	char *prompt; /* owned; as given */
	size_t prompt_len;
	char *params; /* owned: JSON object, or NULL */
	uint64_t from_seq;
	int64_t created_ms;                     /* wall clock */
	int64_t queued_us, slot_us, started_us; /* monotonic; 0: not yet */

	enum run_state state;
	enum run_event events[4]; /* posted while one is being performed */
	size_t nevents;
	bool stepping;

	bool judged; /* the verdict stands; the first one wins */
	enum run_status status;
	char *error;   /* owned, or NULL */
	bool log_lost; /* the event log refused: nothing more is appended */

	struct plan plan;
	struct event_sink sink;
	char *filled;        /* owned: prompt with parameters */
	char *system_prompt; /* owned, likewise */
	int exec_fd;         /* owned until the start */
	int fds[3];          /* owned until the pump */
	struct jail_watch watch;
	uint64_t exec;
	uint32_t layers, fallback;
	struct seed *seed; /* owned */
	struct pump *pump; /* owned */
	struct buf to_stdin;
	struct buf stderr_tail;
	uint64_t output_bytes;
	bool interrupted, exited, gone;
	struct jail_exited exit;
	struct jail_gone end;
	struct driver_outcome outcome;
	bool has_outcome;
	struct artifacts *collecting; /* owned by itself until its done() */
	struct artifacts_result kept;
	struct buf result; /* JSON */
	uint64_t done_seq; /* of the held run.done, 0: none */
	unsigned tries;

	unsigned replies;           /* of agentboxd and the store, still to come */
	struct op deadline;         /* the run's time limit */
	struct op timer;            /* of the state: grace, kill again, collection, retry */
	enum run_state timer_state; /* in which it was set */
	int64_t timer_due_ms;
};

/* The run as new: QUEUED. */
void runner_init(struct run *r);
void runner_step(struct run *r, enum run_event v);
/* Sets the verdict unless there is one.  text may be NULL. */
void runner_judge(struct run *r, enum run_status s, const char *text);
void runner_emit(struct run *r, enum event_type t, const char *members, size_t n);
bool runner_performs(enum run_effect f); /* for the test of the table */
/* Nothing in flight: may be freed. */
bool runner_idle(const struct run *r);
void runner_free(struct run *r);

#endif
