/* The table of run states, walked as a whole. */
#include "supervisor/run.h"

#include "supervisor/runner.h"
#include "supervisor/runs_private.h"
#include "tests/t.h"

static bool reach[RUN_STATE_COUNT];

static void walk(enum run_state s)
{
	if (reach[s])
		return;
	reach[s] = true;
	for (int v = 0; v < RUN_EVENT_COUNT; v++) {
		const struct run_rule *r = run_rule(s, (enum run_event)v);
		if (r)
			walk(r->to);
	}
}

static bool leads_to_done(enum run_state s)
{
	memset(reach, 0, sizeof(reach));
	walk(s);
	return reach[RUN_STATE_DONE];
}

/* Every way to SAVING from a state in which a jail exists must give the jail back. */
static bool has_jail(enum run_state s)
{
	return s != RUN_STATE_QUEUED && s != RUN_STATE_PAUSED && s != RUN_STATE_MAKING &&
	       s != RUN_STATE_UNMAKING;
}

static void rows(enum run_state s)
{
	const bool ending = s == RUN_STATE_SAVING || s == RUN_STATE_DONE;
	for (int v = 0; v < RUN_EVENT_COUNT; v++) {
		const struct run_rule *r = run_rule(s, (enum run_event)v);
		if (!r)
			continue;
		const char *from = run_state_name(s), *event = run_event_name((enum run_event)v);
		ok(r->to < RUN_STATE_COUNT && r->to != s, "%s, %s: goes somewhere else", from,
		        event);
		if (r->to == RUN_STATE_SAVING)
			ok(r->effects & RUN_EFFECT_BIT(RUN_EFFECT_SAVE), "%s, %s: saves", from,
			        event);
		if (r->to == RUN_STATE_SAVING && has_jail(s) && !ending)
			ok(r->effects & (RUN_EFFECT_BIT(RUN_EFFECT_RELEASE) |
			                        RUN_EFFECT_BIT(RUN_EFFECT_KEEP)),
			        "%s, %s: gives the jail back", from, event);
		if (r->to == RUN_STATE_KILLING)
			ok(r->effects & RUN_EFFECT_BIT(RUN_EFFECT_KILL), "%s, %s: kills", from,
			        event);
	}
}

int main(void)
{
	uint32_t used = 0;
	memset(reach, 0, sizeof(reach));
	walk(RUN_STATE_QUEUED);
	for (int s = 0; s < RUN_STATE_COUNT; s++)
		ok(reach[s], "%s is reached from the start", run_state_name((enum run_state)s));
	for (int s = 0; s < RUN_STATE_COUNT; s++)
		ok(leads_to_done((enum run_state)s), "done is reached from %s",
		        run_state_name((enum run_state)s));
	for (int v = 0; v < RUN_EVENT_COUNT; v++)
		ok(!run_rule(RUN_STATE_DONE, (enum run_event)v), "no row out of done for %s",
		        run_event_name((enum run_event)v));
	for (int s = 0; s < RUN_STATE_COUNT; s++) {
		rows((enum run_state)s);
		for (int v = 0; v < RUN_EVENT_COUNT; v++) {
			const struct run_rule *r = run_rule((enum run_state)s, (enum run_event)v);
			used |= r ? r->effects : 0;
		}
	}
	for (int f = 0; f < RUN_EFFECT_COUNT; f++) {
		ok(runner_performs((enum run_effect)f), "'%s' has a performer",
		        run_effect_name((enum run_effect)f));
		ok(runs_step_effects[f] != NULL, "'%s' of a pipeline has one",
		        run_effect_name((enum run_effect)f));
		ok(used & RUN_EFFECT_BIT(f), "'%s' is asked for by a row",
		        run_effect_name((enum run_effect)f));
	}
	/* Whoever asks to end is heard wherever a run can last. */
	static const enum run_state lasting[] = {RUN_STATE_QUEUED, RUN_STATE_PAUSED,
	        RUN_STATE_MAKING, RUN_STATE_SEEDING, RUN_STATE_STARTING, RUN_STATE_RUNNING,
	        RUN_STATE_STOPPING, RUN_STATE_RESTING, RUN_STATE_VERIFYING};
	for (size_t i = 0; i < sizeof(lasting) / sizeof(lasting[0]); i++) {
		ok(run_rule(lasting[i], RUN_EVENT_CANCEL), "cancel counts in %s",
		        run_state_name(lasting[i]));
		ok(run_rule(lasting[i], RUN_EVENT_END), "end counts in %s",
		        run_state_name(lasting[i]));
	}
	ok(!run_rule(RUN_STATE_COUNT, RUN_EVENT_SLOT), "no such state");
	return done();
}
