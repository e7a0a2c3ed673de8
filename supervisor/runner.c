#include "supervisor/runner.h"

#include "supervisor/active.h"
#include "supervisor/runner_again.h"
#include "supervisor/runner_end.h"
#include "supervisor/runner_retry.h"
#include "supervisor/runner_start.h"
#include "supervisor/runner_verify.h"
#include "supervisor/runner_work.h"

static void (*const performers[RUN_EFFECT_COUNT])(struct run *r) = {
        [RUN_EFFECT_MAKE] = runner_start_make,
        [RUN_EFFECT_SEED] = runner_start_seed,
        [RUN_EFFECT_EXEC] = runner_start_exec,
        [RUN_EFFECT_PUMP] = runner_work_pump,
        [RUN_EFFECT_RESUME] = runner_work_resume,
        [RUN_EFFECT_INTERRUPT] = runner_work_interrupt,
        [RUN_EFFECT_KILL] = runner_work_kill,
        [RUN_EFFECT_DRAIN] = runner_end_drain,
        [RUN_EFFECT_REST] = runner_work_rest,
        [RUN_EFFECT_DISMISS] = runner_work_dismiss,
        [RUN_EFFECT_KEEP] = runner_end_keep,
        [RUN_EFFECT_VERIFY] = runner_verify,
        [RUN_EFFECT_UNVERIFY] = runner_verify_end,
        [RUN_EFFECT_COLLECT] = runner_end_collect,
        [RUN_EFFECT_RELEASE] = runner_end_release,
        [RUN_EFFECT_SAVE] = runner_end_save,
        [RUN_EFFECT_PAUSE] = runner_retry_pause,
        [RUN_EFFECT_ENQUEUE] = runner_retry_due,
        [RUN_EFFECT_AGAIN] = runner_again,
        [RUN_EFFECT_FINISH] = runner_end_finish,
};

bool runner_performs(enum run_effect f)
{
	return f < RUN_EFFECT_COUNT && performers[f] != NULL;
}

struct run *runner_new(struct daemon *d, const struct runner_spec *spec)
{
	struct run *r = active_new(performers);
	r->d = d;
	r->runs = spec->runs;
	r->harness = spec->harness;
	r->session = spec->session;
	r->finished = spec->finished;
	r->paused = spec->paused;
	r->due = spec->due;
	return r;
}
