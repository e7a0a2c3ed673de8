#include "supervisor/run.h"

#include <stddef.h>

#define S(x) RUN_STATE_##x
#define V(x) RUN_EVENT_##x
#define F(x) RUN_EFFECT_BIT(RUN_EFFECT_##x)
#define TO(state, what)                                                                            \
	{                                                                                          \
		.defined = true, .to = S(state), .effects = (what)                                 \
	}

/* Whatever ends a run, the jail is killed as a whole, then the pipes are read to their end, then
 * what it did is checked in another jail, then the artifacts are copied with nothing alive to
 * change them, then the jail goes back.  An agent that stays is cut off from the network instead.
 */
static const struct run_rule rules[RUN_STATE_COUNT][RUN_EVENT_COUNT] =
        {
                [S(QUEUED)] =
                        {
                                [V(SLOT)] = TO(MAKING, F(MAKE)),
                                [V(RETRY)] = TO(PAUSED, F(PAUSE)), /* as it was found */
                                [V(STARTED)] = TO(RUNNING, F(PUMP)),
                                [V(ADOPTED)] = TO(RUNNING, F(RESUME)),
                                [V(CANCEL)] = TO(SAVING, F(SAVE)),
                                [V(END)] = TO(SAVING, F(SAVE)),
                        },
                [S(PAUSED)] =
                        {
                                [V(DUE)] = TO(QUEUED, F(ENQUEUE)),
                                [V(CANCEL)] = TO(SAVING, F(SAVE)),
                                [V(END)] = TO(SAVING, F(SAVE)),
                        },
                [S(MAKING)] =
                        {
                                [V(MADE)] = TO(SEEDING, F(SEED)),
                                [V(STARTED)] = TO(RUNNING, F(PUMP)),
                                [V(FAILED)] = TO(SAVING, F(SAVE)),
                                [V(CANCEL)] = TO(UNMAKING, 0),
                                [V(END)] = TO(UNMAKING, 0),
                        },
                [S(UNMAKING)] =
                        {
                                [V(MADE)] = TO(KILLING, F(KILL)),
                                [V(STARTED)] = TO(KILLING, F(KILL)),
                                [V(FAILED)] = TO(SAVING, F(SAVE)),
                        },
                [S(SEEDING)] =
                        {
                                [V(SEEDED)] = TO(STARTING, F(EXEC)),
                                [V(FAILED)] = TO(KILLING, F(KILL)),
                                [V(CANCEL)] = TO(KILLING, F(KILL)),
                                [V(END)] = TO(KILLING, F(KILL)),
                                [V(GONE)] = TO(SAVING, F(RELEASE) | F(SAVE)),
                        },
                [S(STARTING)] =
                        {
                                [V(STARTED)] = TO(RUNNING, F(PUMP)),
                                [V(FAILED)] = TO(KILLING, F(KILL)),
                                [V(CANCEL)] = TO(KILLING, F(KILL)),
                                [V(END)] = TO(KILLING, F(KILL)),
                                [V(GONE)] = TO(SAVING, F(RELEASE) | F(SAVE)),
                        },
                [S(RUNNING)] =
                        {
                                [V(EXITED)] = TO(KILLING, F(KILL)),
                                [V(CANCEL)] = TO(STOPPING, F(INTERRUPT)),
                                [V(END)] = TO(KILLING, F(KILL)),
                                [V(GONE)] = TO(DRAINING, F(DRAIN)),
                                [V(RESTED)] = TO(RESTING, F(REST)),
                        },
                [S(RESTING)] =
                        {
                                [V(SETTLED)] = TO(KEEPING, F(COLLECT)),
                                [V(FAILED)] = TO(RUNNING, F(DISMISS)),
                                [V(EXITED)] = TO(KILLING, F(KILL)),
                                [V(CANCEL)] = TO(KILLING, F(KILL)),
                                [V(END)] = TO(KILLING, F(KILL)),
                                [V(GONE)] = TO(DRAINING, F(DRAIN)),
                        },
                [S(KEEPING)] =
                        {
                                [V(COLLECTED)] = TO(SAVING, F(KEEP) | F(SAVE)),
                        },
                [S(STOPPING)] =
                        {
                                [V(EXITED)] = TO(KILLING, F(KILL)),
                                [V(GRACE_OVER)] = TO(KILLING, F(KILL)),
                                [V(CANCEL)] = TO(KILLING, F(KILL)), /* asked twice: now */
                                [V(END)] = TO(KILLING, F(KILL)),
                                [V(GONE)] = TO(DRAINING, F(DRAIN)),
                        },
                [S(KILLING)] =
                        {
                                [V(GONE)] = TO(DRAINING, F(DRAIN)),
                        },
                [S(DRAINING)] =
                        {
                                [V(DRAINED)] = TO(VERIFYING, F(VERIFY)),
                        },
                [S(VERIFYING)] =
                        {
                                [V(VERIFIED)] = TO(COLLECTING, F(COLLECT)),
                                [V(CANCEL)] = TO(UNVERIFYING, F(UNVERIFY)),
                                [V(END)] = TO(UNVERIFYING, F(UNVERIFY)),
                        },
                [S(UNVERIFYING)] =
                        {
                                [V(VERIFIED)] = TO(COLLECTING, F(COLLECT)),
                        },
                [S(COLLECTING)] =
                        {
                                [V(COLLECTED)] = TO(SAVING, F(RELEASE) | F(SAVE)),
                                [V(AGAIN)] = TO(QUEUED, F(AGAIN)),
                        },
                [S(SAVING)] =
                        {
                                [V(SAVED)] = TO(DONE, F(FINISH)),
                                [V(RETRY)] = TO(PAUSED, F(PAUSE)),
                        },
};

const struct run_rule *run_rule(enum run_state s, enum run_event v)
{
	if (s >= RUN_STATE_COUNT || v >= RUN_EVENT_COUNT || !rules[s][v].defined)
		return NULL;
	return &rules[s][v];
}

#define NAME_ROW(sym, name) name,
static const char *const states[] = {RUN_STATES(NAME_ROW)};
static const char *const events[] = {RUN_EVENTS(NAME_ROW)};
static const char *const effects[] = {RUN_EFFECTS(NAME_ROW)};
#undef NAME_ROW

const char *run_state_name(enum run_state s)
{
	return s < RUN_STATE_COUNT ? states[s] : "unknown";
}

const char *run_event_name(enum run_event v)
{
	return v < RUN_EVENT_COUNT ? events[v] : "unknown";
}

const char *run_effect_name(enum run_effect f)
{
	return f < RUN_EFFECT_COUNT ? effects[f] : "unknown";
}
