#include "supervisor/prewarm.h"

#include "base/clock.h"
#include "base/digest.h"
#include "base/limits.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/early.h"
#include "supervisor/harnesses.h"
#include "supervisor/keeper.h"
#include "supervisor/plan.h"
#include "supervisor/resume.h"
#include "supervisor/runs.h"
#include "supervisor/sessions.h"
#include "supervisor/space.h"
#include "supervisor/store.h"

#include <string.h>

enum { AT_ONCE = 8 /* jails that are being made beside those of runs */ };

struct prewarm {
	struct daemon *d;        /* borrowed */
	struct session *session; /* held */
	struct harness *harness; /* reference */
	struct resume resume;
	bool starts;
	prewarm_done_fn *done;
	void *ctx;
};

static void let_go(struct prewarm *x)
{
	runs_let_session(x->d->runs, x->session);
	harness_unref(x->harness);
	resume_done(&x->resume);
	free(x);
}

static void finish(struct prewarm *x, int rc, const struct err *e)
{
	prewarm_done_fn *done = x->done;
	void *ctx = x->ctx;
	store_use_session(x->d->store, x->session->id, clock_wall_ms());
	let_go(x);
	done(ctx, rc, e);
}

static void on_done(void *ctx, int rc, bool left, const struct err *e)
{
	struct prewarm *x = ctx;
	(void)left; /* it is somebody's */
	if (rc == 0 && !x->session->seeded) {
		x->session->seeded = true;
		store_seeded(x->d->store, x->session->id);
	}
	finish(x, rc, e);
}

static int begin(struct prewarm *x, struct err *e)
{
	const struct early_spec spec = {.session = x->session->id,
	        .user = x->session->user,
	        .resume = x->resume.id,
	        .seeds = !x->session->seeded,
	        .starts = x->starts,
	        .done = on_done,
	        .ctx = x};
	return early_begin(x->d, x->harness, &spec, e);
}

/* Of an agent that was started with something else no jail is there any more. */
static void on_cleared(void *ctx)
{
	struct prewarm *x = ctx;
	struct err e;
	int rc = begin(x, &e);
	if (rc < 0)
		finish(x, rc, &e);
}

/* What cannot be prepared, whatever the session is. */
static int admit(struct daemon *d, struct harness *h, struct err *e)
{
	struct limits unused;
	if (h->nsteps)
		return err_set(e, -EINVAL,
		        "harness '%s' is a pipeline: prewarm the harness of its first step",
		        h->name);
	if (h->repo)
		return err_set(e, -EINVAL,
		        "harness '%s' checks out a repository (workspace.repo), which its first "
		        "run does: it cannot be prewarmed",
		        h->name);
	int rc = plan_check(d, h, &unused, e);
	if (rc == -ENOEXEC)
		err_wrap(e, "harness '%s'", h->name);
	if (rc == 0)
		rc = space_check(d->space, e);
	if (rc == 0 && d->early >= AT_ONCE)
		rc = err_set(e, -EAGAIN, "%d sessions are being prepared already", AT_ONCE);
	return rc;
}

static const char *why_none(const struct daemon *d, const struct harness *h)
{
	if (!h->warm_idle_ms)
		return "the harness has no `warm`";
	if (strstr(h->system_prompt, "{{"))
		return "the harness's text has parameters, which are not known before a run";
	if (keeper_count(d->keeper) + d->early >= runs_room_to_wait(d->runs))
		return "as many agents wait and runs run as runs.warm and runs.max allow";
	return NULL;
}

/* The conversation that the next run will go on with. */
static void find_conversation(struct prewarm *x)
{
	char next[ID_MAX];
	id_new("run", next);
	const struct resume_ask q = {
	        .session = x->session->id,
	        .run = next,
	        .backend = x->harness->backend,
	        .how = x->harness->resume,
	        .converses = resume_converses(x->d, x->harness->backend),
	        .room = LIMIT_PROMPT,
	};
	resume_find(x->d, &q, &x->resume);
}

/* Would the next run take the one that waits there? */
static bool waits_already(const struct prewarm *x)
{
	struct err e; /* what is refused here is refused again, and told */
	char key[DIGEST_TEXT];
	const struct plan_input in = {
	        .prompt = "", .system_prompt = x->harness->system_prompt, .resume = x->resume.id};
	return x->harness->warm_idle_ms && keeper_has(x->d->keeper, x->session->id) &&
	       plan_key(x->d, x->harness, &in, key, &e) == 0 &&
	       keeper_fits(x->d->keeper, x->session->id, key, x->resume.id);
}

/* As prewarm_begin; on anything but 0 the caller lets go. */
static int prepare(struct prewarm *x, struct prewarm_said *ret, struct err *e)
{
	struct keeper *k = x->d->keeper;
	find_conversation(x);
	if (waits_already(x)) {
		*ret = (struct prewarm_said){.agent = true};
		return 1;
	}
	bool waits = keeper_has(k, x->session->id);
	if (waits)
		keeper_end(k, x->session->id, on_cleared, x); /* makes room at once, ends later */
	ret->why = why_none(x->d, x->harness);
	ret->agent = x->starts = !ret->why;
	return waits ? 0 : begin(x, e);
}

int prewarm_begin(struct daemon *d, const char *session, const char *harness, prewarm_done_fn *done,
        void *ctx, struct prewarm_said *ret, struct err *e)
{
	struct session *held = NULL;
	struct harness *h;
	if (daemon_closing(d) || d->early_stopped)
		return err_set(e, -ESHUTDOWN, "the daemon is about to stop, or is being drained");
	int rc = harnesses_get(d->harnesses, harness, &h, e);
	if (rc < 0)
		return rc;
	rc = admit(d, h, e);
	if (rc == 0)
		rc = runs_keep_session(d->runs, session, &held, e);
	if (!held) {
		harness_unref(h);
		return rc;
	}
	struct prewarm *x = xnew(struct prewarm);
	*x = (struct prewarm){.d = d, .session = held, .harness = h, .done = done, .ctx = ctx};
	rc = prepare(x, ret, e);
	if (rc != 0)
		let_go(x);
	return rc;
}
