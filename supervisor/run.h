/*
 * run.h - the states of a run: a table, and nothing else.
 *
 * run_step finds the row for (state, event), gives the next state and the
 * effects to perform; no row means that the event does not count in that state.
 * runner.c performs the effects and feeds back what came of them.  Pure.
 */
#ifndef SUPERVISOR_RUN_H
#define SUPERVISOR_RUN_H

#include <stdbool.h>
#include <stdint.h>

#define RUN_STATES(X)                                                                              \
	X(QUEUED, "queued")           /* waits for a slot */                                       \
	X(PAUSED, "paused")           /* an attempt has failed, the next one comes later */        \
	X(MAKING, "making")           /* the jail is being made */                                 \
	X(UNMAKING, "unmaking")       /* no longer wanted, while it is being made */               \
	X(SEEDING, "seeding")         /* files are written into the workspace and home */          \
	X(STARTING, "starting")       /* the agent's process is being started */                   \
	X(RUNNING, "running")         /* the agent works */                                        \
	X(STOPPING, "stopping")       /* it was asked to stop and has its grace */                 \
	X(KILLING, "killing")         /* cgroup.kill was asked for */                              \
	X(DRAINING, "draining")       /* nothing lives; the pipes' rest is read */                 \
	X(VERIFYING, "verifying")     /* the harness's check runs in a jail of its own */          \
	X(UNVERIFYING, "unverifying") /* that check is being ended */                              \
	X(COLLECTING, "collecting")   /* artifacts are copied */                                   \
	X(RESTING, "resting")         /* the agent stays; what it sent out is waited for */        \
	X(KEEPING, "keeping")         /* artifacts are copied beside an agent that waits */        \
	X(SAVING, "saving")           /* the result is on its way to the disk */                   \
	X(DONE, "done")

enum run_state {
#define RUN_STATE_ENUM(sym, name) RUN_STATE_##sym,
	RUN_STATES(RUN_STATE_ENUM)
#undef RUN_STATE_ENUM
	        RUN_STATE_COUNT
};

#define RUN_EVENTS(X)                                                                              \
	X(SLOT, "slot")       /* the scheduler lets it run */                                      \
	X(MADE, "made")       /* the jail is there */                                              \
	X(STARTED, "started") /* the agent's process is there (MADE with it: both at once) */      \
	X(SEEDED, "seeded")   /* files are written */                                              \
	X(FAILED, "failed")   /* making, seeding or starting failed */                             \
	X(EXITED, "exited")   /* the agent's main process ended */                                 \
	X(CANCEL, "cancel")   /* somebody asked */                                                 \
	X(END, "end")         /* must end now: deadline, limit, lost log, shutdown */              \
	X(GRACE_OVER, "grace over") /* asked to stop and did not */                                \
	X(GONE, "gone")             /* no process of the jail is left */                           \
	X(DRAINED, "drained")       /* both pipes are at their end */                              \
	X(VERIFIED, "verified")     /* the check has ended, or there was none */                   \
	X(COLLECTED, "collected")   /* artifacts are copied, or given up */                        \
	X(RETRY, "retry")           /* it has failed, and is tried again */                        \
	X(DUE, "due")               /* its pause is over */                                        \
	X(AGAIN, "again")           /* nothing was done, and it may begin anew */                  \
	X(RESTED, "rested")         /* the agent has done its run and waits for another */         \
	X(SETTLED, "settled")       /* nothing goes out of its jail any more */                    \
	X(SAVED, "saved")           /* the commit is synced, or failed */                          \
	X(ADOPTED, "adopted")       /* an earlier supervisor has brought it to where it runs */

enum run_event {
#define RUN_EVENT_ENUM(sym, name) RUN_EVENT_##sym,
	RUN_EVENTS(RUN_EVENT_ENUM)
#undef RUN_EVENT_ENUM
	        RUN_EVENT_COUNT
};

/* In the order in which they are performed. */
#define RUN_EFFECTS(X)                                                                             \
	X(MAKE, "make the jail")                                                                   \
	X(SEED, "write files")                                                                     \
	X(EXEC, "start the agent")                                                                 \
	X(PUMP, "move its bytes")                                                                  \
	X(RESUME, "go on moving its bytes")                                                        \
	X(INTERRUPT, "ask it to stop")                                                             \
	X(KILL, "kill the jail")                                                                   \
	X(DRAIN, "wait for the pipes' end")                                                        \
	X(REST, "cut its jail off")                                                                \
	X(DISMISS, "end its input after all")                                                      \
	X(VERIFY, "check what it did")                                                             \
	X(UNVERIFY, "end that check")                                                              \
	X(COLLECT, "collect artifacts")                                                            \
	X(KEEP, "keep the agent for the next run")                                                 \
	X(SAVE, "write the result")                                                                \
	X(RELEASE, "give the jail back")                                                           \
	X(PAUSE, "give the slot back for a while")                                                 \
	X(ENQUEUE, "wait for a slot")                                                              \
	X(AGAIN, "begin anew")                                                                     \
	X(FINISH, "tell, and give the slot back")

enum run_effect {
#define RUN_EFFECT_ENUM(sym, name) RUN_EFFECT_##sym,
	RUN_EFFECTS(RUN_EFFECT_ENUM)
#undef RUN_EFFECT_ENUM
	        RUN_EFFECT_COUNT
};
#define RUN_EFFECT_BIT(x) (1u << (x))

struct run_rule {
	bool defined;
	enum run_state to;
	uint32_t effects; /* bits of enum run_effect */
};

/* The row, or NULL: the event does not count in that state. */
const struct run_rule *run_rule(enum run_state s, enum run_event v);
const char *run_state_name(enum run_state s);
const char *run_event_name(enum run_event v);
const char *run_effect_name(enum run_effect f);

#endif
