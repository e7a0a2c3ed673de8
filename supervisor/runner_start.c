#include "supervisor/runner_start.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "proto/exec.h"
#include "supervisor/active.h"
#include "supervisor/daemon.h"
#include "supervisor/params.h"
#include "supervisor/policies.h"
#include "supervisor/purses.h"
#include "supervisor/runner_work.h"
#include "supervisor/seed.h"
#include "supervisor/store.h"

#include <stdio.h>
#include <string.h>

static void deadline_fired(struct op *op, int res, uint32_t flags)
{
	(void)flags;
	struct run *r = container_of(op, struct run, deadline);
	if (res == -ETIME && r->state < RUN_STATE_KILLING) {
		active_emit_limit(r, "wall", r->plan.timeout_ms);
		char text[96];
		(void)snprintf(text, sizeof(text), "not done after %llu ms",
		        (unsigned long long)r->plan.timeout_ms);
		active_judge(r, RUN_TIMEOUT, text);
		active_step(r, RUN_EVENT_END);
	}
	active_settle(r);
}

int runner_start_plan(struct run *r, struct err *e)
{
	struct params p;
	int rc = params_parse(r->params, &p, e);
	if (rc < 0)
		return rc;
	const char *const *names = (const char *const *)p.names;
	const char *const *values = (const char *const *)p.values;
	size_t n = 0, unused;
	const char *system = r->harness->system_prompt ? r->harness->system_prompt : "";
	r->filled = plan_fill(r->prompt, r->prompt_len, names, values, p.n, &n);
	r->system_prompt = plan_fill(system, strlen(system), names, values, p.n, &unused);
	params_done(&p);
	if (!r->filled || !r->system_prompt)
		return err_set(e, -E2BIG, "the prompt with its parameters is longer than %d bytes",
		        LIMIT_PROMPT);
	auto_free char *resume = store_resume(r->d->store, r->session->id, r->harness->backend);
	struct plan_input in = {
	        .prompt = r->filled,
	        .prompt_len = n,
	        .system_prompt = r->system_prompt,
	        .resume = resume,
	};
	return plan_make(r->d, r->harness, &in, &r->sink, &r->plan, e);
}

void runner_start_deadline(struct run *r, int64_t due_us)
{
	int64_t left_ms = (due_us - clock_mono_us()) / 1000;
	r->deadline_us = due_us;
	loop_timeout(r->d->loop, &r->deadline, left_ms > 0 ? left_ms : 0, deadline_fired);
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

static uint32_t exec_flags(const struct run *r)
{
	return r->harness->user == HARNESS_USER_ROOT ? JAIL_MAKE_ROOT : 0;
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
	ret->run = r->plan.budget;
	return rc;
}

void runner_start_make(struct run *r)
{
	struct err e;
	r->slot_us = clock_mono_us();
	store_start_run(r->d->store, r->id, clock_wall_ms());
	struct jail_purse purse;
	int fd = runner_start_plan(r, &e);
	if (fd == 0)
		fd = fill_purse(r, &purse, &e);
	if (fd == 0)
		fd = pack_exec(r, &e);
	if (fd < 0) {
		active_fail(r, &e);
		return;
	}
	runner_start_deadline(r, r->slot_us + (int64_t)r->plan.timeout_ms * 1000);
	bool with_exec = !seed_needed(r->harness, seeds_now(r), &r->plan.command);
	struct jail_make m = {
	        .policy_generation = r->plan.policy_generation,
	        .policy = r->plan.policy_index,
	        .flags = JAIL_MAKE_SESSION | (with_exec ? JAIL_MAKE_EXEC | exec_flags(r) : 0u),
	        .narrow = r->plan.narrow,
	        .purse = purse,
	};
	memcpy(m.session, r->session->id, sizeof(m.session));
	memcpy(m.run, r->id, sizeof(m.run));
	if (r->plan.agent_files)
		(void)str_copy(m.agent, sizeof(m.agent), r->plan.backend); /* a checked name */
	r->exec_fd = with_exec ? -1 : fd;
	runner_work_watch(r);
	r->replies++;
	jails_make(r->d->jails, &m, with_exec ? fd : -1, &r->watch, on_made, r);
}

static void on_seeded(void *ctx, int rc, const struct err *e)
{
	struct run *r = ctx;
	seed_close(take(r->seed));
	if (rc < 0) {
		active_fail(r, e);
		return;
	}
	if (!r->session->seeded) {
		r->session->seeded = true;
		store_seeded(r->d->store, r->session->id);
	}
	active_step(r, RUN_EVENT_SEEDED);
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

void runner_start_seed(struct run *r)
{
	r->replies++;
	jails_worker(r->d->jails, r->watch.jail, on_seed_worker, r);
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
	jails_exec(r->d->jails, r->watch.jail, exec_flags(r) | JAIL_MAKE_PROGRAM,
	        take_fd(r->exec_fd), on_exec, r);
}
