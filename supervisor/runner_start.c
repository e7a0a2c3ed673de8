#include "supervisor/runner_start.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "proto/exec.h"
#include "supervisor/active.h"
#include "supervisor/daemon.h"
#include "supervisor/guard.h"
#include "supervisor/keeper.h"
#include "supervisor/params.h"
#include "supervisor/policies.h"
#include "supervisor/purses.h"
#include "supervisor/runner_repo.h"
#include "supervisor/runner_work.h"
#include "supervisor/seed.h"
#include "supervisor/store.h"

#include <stdio.h>
#include <string.h>

/* Once: another supervisor has it from the journal. */
static void decide_resume(struct run *r, size_t prompt_len)
{
	if (r->resume_known)
		return;
	const struct resume_ask q = {
	        .session = r->session->id,
	        .run = r->id,
	        .backend = r->harness->backend,
	        .how = r->harness->resume,
	        .converses = resume_converses(r->d, r->harness->backend),
	        .lost = r->lost,
	        .room = LIMIT_PROMPT - prompt_len,
	};
	resume_find(r->d, &q, &r->resume);
	r->resume_known = true;
}

/* Puts it in front of the prompt. */
static int add_context(struct run *r, size_t *n, struct err *e)
{
	const struct resume *x = &r->resume;
	if (!x->context)
		return 0;
	auto_buf struct buf b = BUF_INIT(LIMIT_PROMPT);
	(void)buf_put(&b, x->context, x->context_len); /* the second one fails after the first */
	if (buf_put(&b, r->filled, *n) < 0)
		return err_set(e, -E2BIG,
		        "the prompt with what came before is longer than %d bytes", LIMIT_PROMPT);
	free(r->filled);
	*n = b.len;
	r->filled = buf_take(&b);
	return 0;
}

/* The agent that waits for this run, if there is one and it is what a new one would be. */
static void claim(struct run *r, const struct plan_input *in)
{
	struct err e;
	char key[DIGEST_TEXT];
	if (r->adopted || !r->harness->warm_idle_ms || !keeper_has(r->d->keeper, r->session->id) ||
	        plan_key(r->d, r->harness, in, key, &e) < 0)
		return; /* the plan is refused for the same reason */
	r->waited = keeper_claim(r->d->keeper, r->session->id, key, in->resume);
	const char *live = r->waited ? kept_agent(r->waited)->live : NULL;
	r->warm = r->waited != NULL;
	r->live = live ? xstrdup(live) : NULL; /* one that was started ahead knows of nothing */
}

int runner_start_plan(struct run *r, struct err *e)
{
	struct params p;
	int rc = checkout_load(&r->checkout, r->d->store, r->harness, r->id, r->session->id, e);
	if (rc == 0 && r->checkout.asked) /* both may have changed since it was accepted */
		rc = checkout_admit(r->d->policies, r->harness, &r->checkout.ask, e);
	if (rc == 0)
		rc = params_parse(r->params, &p, e);
	if (rc < 0)
		return rc;
	size_t n = 0, unused;
	const char *system = r->harness->system_prompt ? r->harness->system_prompt : "";
	r->filled = params_fill(&p, r->prompt, r->prompt_len, &n);
	r->system_prompt = params_fill(&p, system, strlen(system), &unused);
	params_done(&p);
	if (!r->filled || !r->system_prompt)
		return err_set(e, -E2BIG, "the prompt with its parameters is longer than %d bytes",
		        LIMIT_PROMPT);
	decide_resume(r, n);
	rc = add_context(r, &n, e);
	if (rc < 0)
		return rc;
	struct plan_input in = {
	        .prompt = r->filled,
	        .prompt_len = n,
	        .system_prompt = r->system_prompt,
	        .resume = r->resume.id,
	        .commits = r->checkout.asked,
	};
	claim(r, &in);
	in.live = r->live;
	return plan_make(r->d, r->harness, &in, &r->sink, &r->plan, e);
}

/* The prompt as the agent would read it, and each parameter: those are in the system prompt, too.
 */
static bool input_denied(struct run *r)
{
	struct guard *g = guard_new(r->harness, GUARD_INPUT);
	if (!g)
		return false;
	struct err e;
	struct params p;
	bool parsed = params_parse(r->params, &p, &e) == 0;
	size_t n = 0;
	auto_free char *prompt = parsed ? params_fill(&p, r->prompt, r->prompt_len, &n) : NULL;
	bool no = prompt && guard_denies(g, prompt, n);
	for (size_t i = 0; prompt && i < p.n && !no; i++)
		no = guard_denies(g, p.values[i], strlen(p.values[i]));
	if (no)
		active_block(r, false, guard_rule(g));
	else if (!prompt)
		active_block(r, false, "unchecked");
	if (parsed)
		params_done(&p);
	guard_free(g);
	return r->judged;
}

static int pack_exec(struct run *r, struct err *e)
{
	struct exec_spec spec = {
	        .argv = (const char *const *)r->plan.command.argv,
	        .env = (const char *const *)r->plan.env,
	        .cwd = DRIVER_WORKSPACE,
	};
	return exec_pack(&spec, e);
}

static void take_stdio(struct run *r, const struct jail_reply *reply, int fds[MSG_FDS])
{
	active_veil(r, &reply->veil);
	r->exec = reply->exec;
	for (int i = 0; i < 3; i++)
		r->fds[i] = take_fd(fds[i]);
}

static void on_made(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct run *r = ctx;
	r->replies--;
	if (reply->err.code) {
		struct err e = reply->err;
		active_fail(r, &e);
		active_settle(r);
		return;
	}
	r->layers = reply->layers;
	r->fallback = reply->fallback;
	r->disk = reply->disk;
	r->session->jail = reply->jail;
	memcpy(r->session->policy, r->plan.policy, sizeof(r->session->policy));
	bool started = r->exec_fd < 0; /* it went along */
	if (started)
		take_stdio(r, reply, fds);
	active_step(r, started ? RUN_EVENT_STARTED : RUN_EVENT_MADE);
	active_settle(r);
}

/* The seed files are written once; again where they may be gone, and never over what is there. */
static bool seeds_now(const struct run *r)
{
	return !r->session->seeded || r->plan.is_volatile;
}

static int fill_purse(struct run *r, struct jail_purse *ret, struct err *e)
{
	const struct policy *p = &policies_set(r->d->policies)->policies[r->plan.policy_index];
	int rc = purses_fill(r->d, p, r->session->id, r->session->user, ret, e);
	ret->run = r->past.failed ? purses_rest(p, &r->plan.budget, &r->spent) : r->plan.budget;
	return rc;
}

/* In a jail of its own. */
static void make_cold(struct run *r)
{
	struct err e;
	struct jail_purse purse;
	int fd = fill_purse(r, &purse, &e);
	if (fd == 0)
		fd = pack_exec(r, &e);
	if (fd < 0) {
		active_fail(r, &e);
		return;
	}
	r->d->stats.warm_misses += r->plan.warm;
	bool with_exec =
	        !seed_needed(r->harness, seeds_now(r), &r->plan.command) && !runner_repo_clones(r);
	struct jail_make m = {
	        .policy_generation = r->plan.policy_generation,
	        .policy = r->plan.policy_index,
	        .flags = JAIL_MAKE_SESSION | (with_exec ? JAIL_MAKE_EXEC | r->plan.exec_flags : 0u),
	        .narrow = r->plan.narrow,
	        .outlets = r->plan.outlets,
	        .keeps = r->plan.keeps,
	        .purse = purse,
	};
	memcpy(m.session, r->session->id, sizeof(m.session));
	memcpy(m.run, r->id, sizeof(m.run));
	if (r->plan.agent_files)
		(void)str_copy(m.agent, sizeof(m.agent), r->plan.backend); /* a checked name */
	if (r->harness->snapshot)
		(void)str_copy(m.snapshot, sizeof(m.snapshot), r->harness->snapshot); /* likewise */
	if (r->harness->template_dir)
		(void)str_copy(m.template, sizeof(m.template), r->harness->template_dir);
	r->exec_fd = with_exec ? -1 : fd;
	runner_work_watch(r);
	r->replies++;
	jails_make(r->d->jails, &m, with_exec ? fd : -1, &r->watch, on_made, r);
}

/* No jail of its session is there any more. */
static void on_cleared(void *ctx)
{
	struct run *r = ctx;
	r->replies--;
	if (r->state == RUN_STATE_MAKING)
		make_cold(r);
	else
		active_step(r, RUN_EVENT_FAILED); /* not wanted any more */
	active_settle(r);
}

static void clear_and_make(struct run *r)
{
	if (!keeper_has(r->d->keeper, r->session->id)) {
		make_cold(r);
		return;
	}
	r->replies++;
	keeper_end(r->d->keeper, r->session->id, on_cleared, r);
}

/* The driver that was told of the agent knows too much for a new one. */
static int plan_anew(struct run *r, struct err *e)
{
	plan_done(&r->plan);
	free(take(r->live));
	free(take(r->filled));
	free(take(r->system_prompt));
	return runner_start_plan(r, e);
}

static void go_cold(struct run *r)
{
	struct err e;
	keeper_end_claimed(take(r->waited));
	if (plan_anew(r, &e) < 0)
		active_fail(r, &e);
	else
		clear_and_make(r);
}

static void take_over(struct run *r)
{
	const struct kept_agent *a = kept_agent(r->waited);
	r->layers = a->layers;
	r->fallback = a->fallback;
	r->disk = a->disk;
	r->exec = a->exec;
	r->before = a->used;
	if (a->ahead && !r->session->seeded) {
		r->session->seeded = true;
		store_seeded(r->d->store, r->session->id);
	}
	r->session->jail = a->jail;
	memcpy(r->session->policy, r->plan.policy, sizeof(r->session->policy));
	runner_work_watch(r);
	uint64_t jail = a->jail;
	const struct jail_live *live = jails_find(r->d->jails, jail);
	if (live)
		active_veil(r, &live->veil);
	runner_work_own(r, kept_pass(take(r->waited)));
	jails_watch(r->d->jails, jail, &r->watch);
	r->d->stats.warm_hits++;
}

static void on_claimed(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct run *r = ctx;
	(void)fds;
	r->replies--;
	if (r->state != RUN_STATE_MAKING) { /* not wanted any more */
		keeper_end_claimed(take(r->waited));
		active_step(r, RUN_EVENT_FAILED);
	} else if (reply->err.code || !kept_lives(r->waited)) {
		go_cold(r);
	} else {
		take_over(r);
		active_step(r, RUN_EVENT_STARTED);
	}
	active_settle(r);
}

static void make_warm(struct run *r)
{
	struct err e;
	struct jail_claim m = {.jail = kept_agent(r->waited)->jail};
	if (fill_purse(r, &m.purse, &e) < 0) {
		active_fail(r, &e);
		return;
	}
	memcpy(m.session, r->session->id, sizeof(m.session));
	memcpy(m.run, r->id, sizeof(m.run));
	r->replies++;
	jails_claim(r->d->jails, &m, on_claimed, r);
}

void runner_start_make(struct run *r)
{
	struct err e;
	int64_t now = clock_mono_us();
	r->attempt += r->begins_attempt;
	r->begins_attempt = false;
	bool first = !r->slot_us;
	if (first) {
		r->slot_us = now;
		r->over_us = active_over(r);
		store_start_run(r->d->store, r->id, clock_wall_ms());
	}
	if (first && input_denied(r)) {
		active_step(r, RUN_EVENT_FAILED);
		return;
	}
	if (runner_start_plan(r, &e) < 0) {
		active_fail(r, &e);
		return;
	}
	/* One that begins anew at once has the time that is left. */
	int64_t due = r->deadline_us ? r->deadline_us : now + (int64_t)r->plan.timeout_ms * 1000;
	active_timed(r, r->over_us && r->over_us < due ? r->over_us : due);
	if (r->waited)
		make_warm(r);
	else
		clear_and_make(r);
}

static void seeded(struct run *r)
{
	if (!r->session->seeded) {
		r->session->seeded = true;
		store_seeded(r->d->store, r->session->id);
	}
	active_step(r, RUN_EVENT_SEEDED);
}

static void on_seeded(void *ctx, int rc, const struct err *e)
{
	struct run *r = ctx;
	seed_close(take(r->seed));
	if (rc < 0)
		active_fail(r, e);
	else
		seeded(r);
}

static void on_seed_worker(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct run *r = ctx;
	r->replies--;
	if (r->state == RUN_STATE_SEEDING) {
		struct err e = reply->err;
		if (e.code)
			active_fail(r, &e);
		else
			r->seed = seed_start(r->d->loop, take_fd(fds[0]), r->harness, seeds_now(r),
			        &r->plan.command, on_seeded, r);
	}
	active_settle(r);
}

static void seed_files(struct run *r)
{
	if (!seed_needed(r->harness, seeds_now(r), &r->plan.command)) {
		seeded(r);
		return;
	}
	r->replies++;
	jails_worker(r->d->jails, r->watch.jail, on_seed_worker, r);
}

/* A checkout wants an empty workspace, so it comes first; seed files never replace what is there.
 */
void runner_start_seed(struct run *r)
{
	if (runner_repo_clones(r))
		runner_repo_clone(r, seed_files);
	else
		seed_files(r);
}

static void on_exec(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct run *r = ctx;
	r->replies--;
	if (r->state == RUN_STATE_STARTING) {
		struct err e = reply->err;
		if (e.code) {
			active_fail(r, &e);
		} else {
			take_stdio(r, reply, fds);
			active_step(r, RUN_EVENT_STARTED);
		}
	}
	active_settle(r);
}

void runner_start_exec(struct run *r)
{
	r->replies++;
	jails_exec(r->d->jails, r->watch.jail, r->plan.exec_flags | JAIL_MAKE_PROGRAM,
	        take_fd(r->exec_fd), on_exec, r);
}
