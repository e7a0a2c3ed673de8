/*
 * Theory of operation.  The check runs in a jail of its own, of the same policy
 * and session: nothing that the agent started, mounted in memory or left in
 * /tmp is there, only its files are.  Its environment is made of the policy
 * and the harness; its home is an empty one, so that no file in the agent's
 * home says what a shell, a linker or an interpreter does in it.
 *
 * The agent's jail must be released first: a session's image has one jail.
 * What is known of it goes into the journal before, so that a supervisor that comes finds the run
 * there and begins the check anew.  The check's own jail belongs to no run: it ends with
 * the supervisor that asked for it.  So a check that was not seen to pass has not passed.
 */
#include "supervisor/runner_verify.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "proto/exec.h"
#include "supervisor/active.h"
#include "supervisor/daemon.h"
#include "supervisor/guard.h"
#include "supervisor/journal.h"
#include "supervisor/policies.h"
#include "supervisor/purses.h"
#include "supervisor/runner_end.h"
#include "supervisor/veiled.h"
#include "supervisor/verify.h"

#include <string.h>

enum {
	DRAIN_MS = 5000,  /* nothing lives: what is in the pipes takes milliseconds */
	REKILL_MS = 5000, /* as of any jail */
};

/* What it prints is of the agent's making. */
static void look_at_output(struct run *r)
{
	struct buf *b = &r->verify->tail;
	struct guard *g = guard_new(r->harness, GUARD_TEXT);
	if (b->len && guard_denies(g, b->p, b->len)) {
		active_block(r, true, guard_rule(g));
		buf_clear(b);
	}
	guard_free(g);
}

static void told(struct run *r)
{
	look_at_output(r);
	auto_buf struct buf b = BUF_INIT(16384);
	struct jw w = JW_INIT(&b);
	verify_members(r->verify, &w);
	active_emit(r, EVENT_VERIFY_DONE, b.p, b.len);
}

/* Whoever ended the run has its word; else this is what the check came to. */
static void end(struct run *r)
{
	struct verify *v = r->verify;
	v->took_ms = (uint64_t)(clock_mono_us() - v->begun_us) / 1000;
	v->done = r->state == RUN_STATE_VERIFYING && !r->judged;
	if (v->done)
		told(r);
	active_step(r, RUN_EVENT_VERIFIED);
}

static void give_up_pipes(struct run *r)
{
	log_warn("r=%s: a pipe of its check stays open though nothing lives", r->id);
	pump_give_up(r->verify->pump);
}

static void look(struct run *r)
{
	const struct verify *v = r->verify;
	if (!v->gone)
		return;
	if (pump_drained(v->pump))
		end(r);
	else
		active_timer(r, DRAIN_MS, give_up_pipes);
}

/* ---- its end ---- */

static void kill_again(struct run *r)
{
	jails_kill(r->d->jails, r->watch.jail);
	active_timer(r, REKILL_MS, kill_again);
}

static void out_of_time(struct run *r)
{
	r->verify->timed_out = !r->verify->exited;
	kill_again(r);
}

static void on_exited(struct jail_watch *w, const struct jail_exited *x)
{
	struct run *r = container_of(w, struct run, watch);
	struct verify *v = r->verify;
	if (x->exec != v->exec || v->exited)
		return;
	v->exited = true;
	v->code = x->error ? jails_start_code(x) : x->code;
	v->sig = x->error ? 0 : x->sig;
	if (x->error) {
		char why[JAILS_WHY];
		jails_why(x, why);
		verify_print(v, why, strlen(why));
	}
	kill_again(r); /* with all that it has started */
}

static void on_gone(struct jail_watch *w, const struct jail_gone *x)
{
	struct run *r = container_of(w, struct run, watch);
	struct verify *v = r->verify;
	v->gone = true;
	v->oom = x->end == JAIL_END_OOM;
	look(r);
}

/* ---- its bytes ---- */

static void on_bytes(void *ctx, enum pump_stream s, const char *p, size_t n)
{
	const struct run *r = ctx;
	(void)s;
	verify_print(r->verify, p, n);
}

static void on_line(void *ctx, enum pump_stream s, const char *p, size_t n, bool whole)
{
	(void)ctx, (void)s, (void)p, (void)n, (void)whole;
}

static void on_stdin_ended(void *ctx)
{
	(void)ctx; /* agentboxd has no end of it */
}

static void on_drained(void *ctx)
{
	look(ctx);
}

static const struct pump_calls pump_calls = {
        .line = on_line,
        .bytes = on_bytes,
        .stdin_ended = on_stdin_ended,
        .drained = on_drained,
};

/* ---- its beginning ---- */

static void fail(struct run *r, const struct err *e)
{
	r->verify->why = *e;
	end(r);
}

static void on_made(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct run *r = ctx;
	struct verify *v = r->verify;
	r->replies--;
	if (reply->err.code) {
		fail(r, &reply->err);
		active_settle(r);
		return;
	}
	int own[3];
	for (int i = 0; i < 3; i++)
		own[i] = take_fd(fds[i]);
	v->made = true;
	v->exec = reply->exec;
	v->pump = pump_new_held(r->d->loop, own, &pump_calls, r, 0);
	pump_veil(v->pump, veiled_veil(r->veiled));
	pump_go(v->pump);
	(void)pump_write(v->pump, "", 0, true); /* nothing always fits */
	if (r->state == RUN_STATE_VERIFYING)
		active_timer(r, (int64_t)v->timeout_ms, out_of_time);
	else
		kill_again(r);
	active_settle(r);
}

static int ask(struct run *r, struct err *e)
{
	const struct policy *p; /* a reload may have moved it since the agent began */
	int index = policies_find(r->d->policies, r->plan.policy, &p, e);
	if (index < 0)
		return index;
	const struct exec_spec spec = {
	        .argv = (const char *const *)r->harness->verify,
	        .env = (const char *const *)r->plan.verify_env,
	        .cwd = DRIVER_WORKSPACE,
	};
	struct jail_make m = {
	        .policy_generation = policies_set(r->d->policies)->generation,
	        .policy = (uint32_t)index,
	        .flags = JAIL_MAKE_SESSION | JAIL_MAKE_EXEC |
	                 (r->plan.exec_flags & (uint32_t)JAIL_MAKE_ROOT),
	        .narrow = r->plan.narrow,
	        .outlets = r->plan.outlets,
	        .keeps = r->plan.keeps,
	};
	int rc = purses_fill(r->d, p, r->session->id, r->session->user, &m.purse, e);
	if (rc < 0)
		return rc;
	m.purse.run = purses_rest(p, &r->plan.budget, &r->spent);
	memcpy(m.session, r->session->id, sizeof(m.session));
	int fd = exec_pack(&spec, e);
	if (fd < 0)
		return fd;
	r->former_tokens = r->tokens;
	r->former_spent = r->spent;
	r->watch.exited = on_exited;
	r->watch.gone = on_gone;
	r->replies++;
	jails_make(r->d->jails, &m, fd, &r->watch, on_made, r);
	return 0;
}

/* As agentboxd would tell of it. */
static void remember(struct run *r)
{
	if (!r->journal)
		return;
	struct journal_state *kept = journal_state(r->journal);
	struct jail_found *x = &kept->agent;
	*x = (struct jail_found){
	        .jail = r->watch.jail,
	        .exec = r->exec,
	        .flags = FOUND_EXEC | FOUND_GONE | (r->exited ? (uint32_t)FOUND_EXITED : 0u),
	        .layers = r->layers,
	        .fallback = r->fallback,
	        .disk = r->disk,
	        .exited = r->exit,
	        .gone = r->end,
	};
	if (r->veiled)
		x->veil = *veiled_veil(r->veiled);
	memcpy(x->run, r->id, sizeof(x->run));
	memcpy(x->session, r->session->id, sizeof(x->session));
	memcpy(x->policy, r->session->policy, sizeof(x->policy));
	kept->verifying = 1;
}

static bool wanted(const struct run *r)
{
	return r->harness->verify && r->has_outcome && !r->judged && !r->verify &&
	       r->outcome.status == DRIVER_SUCCEEDED;
}

void runner_verify(struct run *r)
{
	struct err e;
	runner_end_driver(r);
	if (!wanted(r)) {
		active_step(r, RUN_EVENT_VERIFIED);
		return;
	}
	r->verify = verify_new(r->harness->verify_required, r->harness->verify_timeout_ms);
	r->verify->begun_us = clock_mono_us();
	remember(r);
	runner_end_release(r);
	if (ask(r, &e) < 0)
		fail(r, &e);
}

void runner_verify_end(struct run *r)
{
	if (r->verify && r->verify->made && !r->verify->gone)
		kill_again(r);
}
