/*
 * Theory of operation.  runner_step is the only writer of `state`: it finds the
 * row, sets the state, then performs the row's effects in the order of the
 * enum.  An effect that knows its outcome at once posts the event, which is
 * taken up when the row is done.  Replies of agentboxd and of the store are
 * counted in `replies`; the run is freed by runs.c when it is DONE and neither
 * a reply nor a ring operation is outstanding.
 */
#include "supervisor/runner.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "policy/layers.h"
#include "proto/exec.h"
#include "proto/init.h"
#include "supervisor/daemon.h"
#include "supervisor/eventlog.h"
#include "supervisor/params.h"
#include "supervisor/policies.h"
#include "supervisor/result.h"
#include "supervisor/runs.h"
#include "supervisor/seed.h"
#include "supervisor/store.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* ---- verdict and events ---- */

void runner_judge(struct run *r, enum run_status s, const char *text)
{
	if (r->judged)
		return;
	r->judged = true;
	r->status = s;
	r->error = text ? xstrdup(text) : NULL;
}

static void lose_log(struct run *r, const struct err *e)
{
	if (r->log_lost)
		return;
	r->log_lost = true;
	log_err("r=%s: %s", r->id, e->text);
	runner_judge(r, RUN_FAILED, e->text);
	runner_step(r, RUN_EVENT_END);
}

/* An event larger than the log takes goes on in pieces, as raw text: nothing is lost. */
static void emit_pieces(struct run *r, enum event_type t, const char *members, size_t n)
{
	for (size_t at = 0; at < n && !r->log_lost; at += LIMIT_RAW_PIECE) {
		size_t k = n - at < LIMIT_RAW_PIECE ? n - at : LIMIT_RAW_PIECE;
		auto_buf struct buf b = BUF_INIT(8 * LIMIT_RAW_PIECE);
		struct jw w = JW_INIT(&b);
		jw_str(&w, "of", event_name(t));
		jw_int(&w, "offset", (int64_t)at);
		jw_bytes(&w, "line", members + at, k);
		struct err e;
		if (eventlog_append(
		            r->d->log, r->session->id, r->id, EVENT_AGENT_RAW, b.p, b.len, &e) < 0)
			lose_log(r, &e);
	}
}

void runner_emit(struct run *r, enum event_type t, const char *members, size_t n)
{
	struct err e;
	if (r->log_lost)
		return;
	int rc = eventlog_append(r->d->log, r->session->id, r->id, t, members, n, &e);
	if (rc == -ENOBUFS)
		emit_pieces(r, t, members, n);
	else if (rc < 0)
		lose_log(r, &e);
}

static void emit_from_driver(
        struct event_sink *sink, enum event_type t, const char *members, size_t n)
{
	runner_emit(container_of(sink, struct run, sink), t, members, n);
}

static void emit_limit(struct run *r, const char *limit, uint64_t value)
{
	auto_buf struct buf b = BUF_INIT(256);
	struct jw w = JW_INIT(&b);
	jw_str(&w, "limit", limit);
	jw_int(&w, "value", (int64_t)value);
	runner_emit(r, EVENT_LIMIT_HIT, b.p, b.len);
}

static void fail(struct run *r, const struct err *e)
{
	runner_judge(r, RUN_FAILED, e->text);
	runner_step(r, RUN_EVENT_FAILED);
}

/* ---- timers ---- */

static void timer_fired(struct op *op, int res, uint32_t flags);

static void timer_set(struct run *r, int64_t ms)
{
	r->timer_state = r->state;
	r->timer_due_ms = clock_mono_ms() + ms;
	if (r->timer.inflight)
		loop_cancel(r->d->loop, &r->timer); /* comes back, and is set anew there */
	else
		loop_timeout(r->d->loop, &r->timer, ms, timer_fired);
}

static void save(struct run *r);

static void timer_fired(struct op *op, int res, uint32_t flags)
{
	(void)res;
	(void)flags;
	struct run *r = container_of(op, struct run, timer);
	if (r->state != r->timer_state || r->state == RUN_STATE_DONE) {
		runs_settled(r);
		return;
	}
	/* Cancelled to be set anew, or the timer of an earlier state. */
	int64_t left = r->timer_due_ms - clock_mono_ms();
	if (left > 0) {
		loop_timeout(r->d->loop, &r->timer, left, timer_fired);
		return;
	}
	if (r->state == RUN_STATE_STOPPING) {
		runner_step(r, RUN_EVENT_GRACE_OVER);
	} else if (r->state == RUN_STATE_KILLING) {
		log_warn("r=%s: its jail is not gone yet, killed again", r->id);
		jails_kill(r->d->jails, r->watch.jail);
		timer_set(r, RUN_REKILL_MS);
	} else if (r->state == RUN_STATE_DRAINING) {
		log_warn("r=%s: a pipe stays open though nothing lives", r->id);
		pump_give_up(r->pump);
	} else if (r->state == RUN_STATE_COLLECTING && r->collecting) {
		artifacts_abort(r->collecting);
	} else if (r->state == RUN_STATE_SAVING) {
		save(r);
	}
}

static void deadline_fired(struct op *op, int res, uint32_t flags)
{
	(void)flags;
	struct run *r = container_of(op, struct run, deadline);
	if (res == -ETIME && r->state < RUN_STATE_KILLING) {
		emit_limit(r, "wall", r->plan.timeout_ms);
		char text[96];
		(void)snprintf(text, sizeof(text), "not done after %llu ms",
		        (unsigned long long)r->plan.timeout_ms);
		runner_judge(r, RUN_TIMEOUT, text);
		runner_step(r, RUN_EVENT_END);
	}
	runs_settled(r);
}

/* ---- what the jail tells ---- */

static const char *stage_name(int stage)
{
	static const char *const names[] = {
#define STAGE_NAME(sym, name) [INIT_STAGE_##sym] = name,
	        INIT_STAGES(STAGE_NAME)
#undef STAGE_NAME
	};
	return stage >= 0 && stage < INIT_STAGE_COUNT ? names[stage] : "unknown step";
}

static void on_exited(struct jail_watch *w, const struct jail_exited *x)
{
	struct run *r = container_of(w, struct run, watch);
	if (x->exec != r->exec || r->exited)
		return;
	r->exited = true;
	r->exit = *x;
	if (x->error) {
		struct err e;
		err_set(&e, -x->error, "'%.80s' could not be started: %s: %s",
		        r->plan.command.argv[0], stage_name(x->stage), strerror(x->error));
		runner_judge(r, RUN_FAILED, e.text);
	}
	runner_step(r, RUN_EVENT_EXITED);
}

static void on_gone(struct jail_watch *w, const struct jail_gone *x)
{
	struct run *r = container_of(w, struct run, watch);
	r->gone = true;
	r->end = *x;
	bool ours = r->state == RUN_STATE_KILLING;
	if (x->end == JAIL_END_OOM || (x->oom_kills && r->exited && r->exit.sig == SIGKILL)) {
		emit_limit(r, "memory", x->resources.memory_peak_bytes);
		runner_judge(r, RUN_OOM, "the jail was out of memory");
	} else if (!ours) {
		runner_judge(r, RUN_FAILED, "the jail ended by itself");
	}
	runner_step(r, RUN_EVENT_GONE);
}

static void on_egress(struct jail_watch *w, const struct jail_egress *x)
{
	struct run *r = container_of(w, struct run, watch);
	if (r->state >= RUN_STATE_SAVING)
		return;
	auto_buf struct buf b = BUF_INIT(4096);
	struct jw j = JW_INIT(&b);
	jw_str(&j, "host", x->host);
	jw_int(&j, "port", x->port);
	if (x->reason[0])
		jw_str(&j, "reason", x->reason);
	if (x->verdict == EGRESS_ALLOWED) {
		jw_int(&j, "bytesIn", (int64_t)x->bytes_in);
		jw_int(&j, "bytesOut", (int64_t)x->bytes_out);
	}
	runner_emit(r, x->verdict == EGRESS_DENIED ? EVENT_EGRESS_DENIED : EVENT_EGRESS_ALLOWED,
	        b.p, b.len);
}

/* ---- effects: starting ---- */

static int make_plan(struct run *r, struct err *e)
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
		fail(r, &e);
		runs_settled(r);
		return;
	}
	r->layers = reply->layers;
	r->fallback = reply->fallback;
	r->session->jail = reply->jail;
	r->session->policy_generation = r->plan.policy_generation;
	memcpy(r->session->policy, r->plan.policy, sizeof(r->session->policy));
	bool started = r->exec_fd < 0; /* it went along */
	if (started)
		take_stdio(r, reply, fds);
	runner_step(r, started ? RUN_EVENT_STARTED : RUN_EVENT_MADE);
	runs_settled(r);
}

static void do_make(struct run *r)
{
	struct err e;
	r->slot_us = clock_mono_us();
	store_start_run(r->d->store, r->id, clock_wall_ms());
	int fd = make_plan(r, &e);
	if (fd == 0)
		fd = pack_exec(r, &e);
	if (fd < 0) {
		fail(r, &e);
		return;
	}
	loop_timeout(r->d->loop, &r->deadline, (int64_t)r->plan.timeout_ms, deadline_fired);
	bool with_exec = !seed_needed(r->harness, !r->session->seeded, &r->plan.command);
	struct jail_make m = {
	        .policy_generation = r->plan.policy_generation,
	        .policy = r->plan.policy_index,
	        .flags = JAIL_MAKE_SESSION | (with_exec ? JAIL_MAKE_EXEC : 0u),
	        .narrow = r->plan.narrow,
	};
	memcpy(m.session, r->session->id, sizeof(m.session));
	if (r->plan.agent_files)
		(void)str_copy(m.agent, sizeof(m.agent), r->plan.backend); /* a checked name */
	r->exec_fd = with_exec ? -1 : fd;
	r->watch.exited = on_exited;
	r->watch.gone = on_gone;
	r->watch.egress = on_egress;
	r->replies++;
	jails_make(r->d->jails, &m, with_exec ? fd : -1, &r->watch, on_made, r);
}

static void on_seeded(void *ctx, int rc, const struct err *e)
{
	struct run *r = ctx;
	seed_close(take(r->seed));
	if (rc < 0) {
		fail(r, e);
		return;
	}
	if (!r->session->seeded) {
		r->session->seeded = true;
		store_seeded(r->d->store, r->session->id);
	}
	runner_step(r, RUN_EVENT_SEEDED);
}

static void on_seed_worker(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct run *r = ctx;
	r->replies--;
	if (r->state == RUN_STATE_SEEDING) {
		struct err e = reply->err;
		if (e.code)
			fail(r, &e);
		else
			r->seed = seed_start(r->d->loop, take_fd(fds[0]), r->harness,
			        !r->session->seeded, &r->plan.command, on_seeded, r);
	}
	runs_settled(r);
}

static void do_seed(struct run *r)
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
			fail(r, &e);
		} else {
			take_stdio(r, reply, fds);
			runner_step(r, RUN_EVENT_STARTED);
		}
	}
	runs_settled(r);
}

static void do_exec(struct run *r)
{
	r->replies++;
	jails_exec(r->d->jails, r->watch.jail, 0, take_fd(r->exec_fd), on_exec, r);
}

/* ---- effects: running ---- */

static void emit_started(struct run *r)
{
	auto_buf struct buf b = BUF_INIT(16384);
	auto_buf struct buf layers = BUF_INIT(4096);
	policies_layers_json(r->layers, &layers);
	struct jw w = JW_INIT(&b);
	jw_str(&w, "harness", r->harness->name);
	jw_str(&w, "backend", r->plan.backend);
	jw_str(&w, "model", r->harness->model);
	jw_str(&w, "agentVersion", r->plan.version);
	jw_str(&w, "policy", r->plan.policy);
	jw_raw(&w, "layers", layers.p, layers.len);
	buf_clear(&layers);
	policies_layers_json(r->fallback, &layers);
	jw_raw(&w, "fallback", layers.p, layers.len);
	buf_clear(&layers);
	policies_layers_json(r->plan.layers_wanted & ~(r->layers | r->fallback), &layers);
	jw_raw(&w, "missing", layers.p, layers.len);
	jw_int(&w, "jail", (int64_t)r->watch.jail);
	jw_bool(&w, "warm", false);
	jw_int(&w, "attempt", 1);
	runner_emit(r, EVENT_RUN_STARTED, b.p, b.len);
}

/* Sends what the driver put into to_stdin. */
static void feed(struct run *r, bool eof)
{
	if (r->pump && (r->to_stdin.len || eof)) {
		int rc = pump_write(r->pump, r->to_stdin.p, r->to_stdin.len, eof);
		if (rc < 0) {
			runner_judge(r, RUN_FAILED, "the agent does not read its input");
			runner_step(r, RUN_EVENT_END);
		}
	}
	buf_clear(&r->to_stdin);
}

static void keep_stderr(struct run *r, const char *p, size_t n)
{
	struct buf *b = &r->stderr_tail;
	if (n > RUN_STDERR_TAIL) {
		p += n - RUN_STDERR_TAIL;
		n = RUN_STDERR_TAIL;
	}
	(void)buf_put(b, p, n); /* fits: the buffer holds twice the tail */
	(void)buf_putc(b, '\n');
	if (b->len > RUN_STDERR_TAIL)
		buf_consume(b, b->len - RUN_STDERR_TAIL);
}

static void on_line(void *ctx, enum pump_stream s, const char *p, size_t n, bool whole)
{
	struct run *r = ctx;
	if (s == PUMP_STDERR) {
		keep_stderr(r, p, n);
		r->plan.driver->error_line(r->plan.run, p, n); /* and agent.raw */
		return;
	}
	bool eof = false;
	r->plan.driver->line(r->plan.run, p, n, whole, &r->to_stdin, &eof);
	feed(r, eof);
}

static void on_bytes(void *ctx, enum pump_stream s, size_t n)
{
	(void)s;
	struct run *r = ctx;
	r->output_bytes += n;
	r->d->stats.output_bytes += n;
	if (!r->plan.output_bytes || r->output_bytes <= r->plan.output_bytes || r->judged)
		return;
	emit_limit(r, "output", r->plan.output_bytes);
	runner_judge(r, RUN_QUOTA, "more output than limits.outputBytes");
	runner_step(r, RUN_EVENT_END);
}

static bool on_ready(void *ctx)
{
	const struct run *r = ctx;
	return !eventlog_behind(r->d->log, r->session->id);
}

static void on_drained(void *ctx)
{
	runner_step(ctx, RUN_EVENT_DRAINED);
}

static void do_pump(struct run *r)
{
	static const struct pump_calls calls = {
	        .line = on_line,
	        .bytes = on_bytes,
	        .ready = on_ready,
	        .drained = on_drained,
	};
	r->started_us = clock_mono_us();
	emit_started(r);
	r->pump = pump_new(r->d->loop, r->fds, &calls, r);
	for (int i = 0; i < 3; i++)
		r->fds[i] = -1;
	bool eof = false;
	int rc = r->plan.driver->start(r->plan.run, &r->to_stdin, &eof);
	if (rc < 0) {
		runner_judge(r, RUN_FAILED, "the prompt is too large for this agent");
		runner_step(r, RUN_EVENT_END);
		return;
	}
	feed(r, eof);
}

static void do_interrupt(struct run *r)
{
	r->interrupted = true;
	if (r->plan.driver->interrupt(r->plan.run, &r->to_stdin))
		feed(r, false);
	else
		jails_signal(r->d->jails, r->watch.jail, r->exec, SIGTERM);
	timer_set(r, RUN_GRACE_MS);
}

static void do_kill(struct run *r)
{
	if (r->deadline.inflight)
		loop_cancel(r->d->loop, &r->deadline);
	seed_close(take(r->seed));
	jails_kill(r->d->jails, r->watch.jail);
	timer_set(r, RUN_REKILL_MS);
}

/* ---- effects: ending ---- */

static void do_drain(struct run *r)
{
	if (!r->pump || pump_drained(r->pump))
		runner_step(r, RUN_EVENT_DRAINED);
	else
		timer_set(r, RUN_REKILL_MS);
}

static void judge_outcome(struct run *r)
{
	struct driver_exit x = {
	        .code = r->exited ? r->exit.code : -1,
	        .sig = r->exited ? r->exit.sig : 0,
	        .interrupted = r->interrupted || r->judged,
	};
	r->plan.driver->end(r->plan.run, &x, &r->outcome);
	r->has_outcome = true;
	if (r->outcome.status == DRIVER_SUCCEEDED) {
		runner_judge(r, RUN_SUCCEEDED, NULL);
		return;
	}
	runner_judge(r, RUN_FAILED, r->outcome.error ? r->outcome.error : "the agent failed");
}

static void on_collected(void *ctx, struct artifacts_result *kept, const struct err *e)
{
	struct run *r = ctx;
	r->collecting = NULL;
	r->kept = *kept;
	if (e) {
		log_warn("r=%s: %s", r->id, e->text);
		auto_buf struct buf b = BUF_INIT(4096);
		struct jw w = JW_INIT(&b);
		jw_str(&w, "message", e->text);
		jw_str(&w, "code", "artifacts");
		jw_bool(&w, "retryable", false);
		runner_emit(r, EVENT_ERROR, b.p, b.len);
	}
	runner_step(r, RUN_EVENT_COLLECTED);
	runs_settled(r);
}

static void on_collect_worker(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct run *r = ctx;
	r->replies--;
	if (reply->err.code) {
		struct artifacts_result none = {0};
		on_collected(r, &none, &reply->err);
		return;
	}
	r->collecting = artifacts_collect(r->d->loop, take_fd(fds[0]), r->d->artifacts_fd, r->id,
	        r->harness->artifacts, on_collected, r);
	timer_set(r, RUN_COLLECT_MS);
}

static void do_collect(struct run *r)
{
	if (r->pump)
		judge_outcome(r);
	if (!r->pump || !r->harness->artifacts || !r->harness->artifacts[0]) {
		runner_step(r, RUN_EVENT_COLLECTED);
		return;
	}
	r->replies++;
	jails_worker(r->d->jails, r->watch.jail, on_collect_worker, r);
}

static void do_release(struct run *r)
{
	jails_unwatch(r->d->jails, &r->watch);
	jails_release(r->d->jails, r->watch.jail);
	r->session->jail = 0;
}

static void on_saved(void *ctx, int rc, const struct err *e)
{
	struct run *r = ctx;
	r->replies--;
	if (rc < 0) {
		/* Nothing is told before it is durable: the disk may have room again later. */
		log_err("r=%s: its result is not saved: %s", r->id, e->text);
		timer_set(r, RUN_RETRY_MS);
		return;
	}
	runner_step(r, RUN_EVENT_SAVED);
	runs_settled(r);
}

/* Writes run.done, hidden.  true: written, or given up because no later try can succeed. */
static bool write_done(struct run *r)
{
	struct err e;
	auto_buf struct buf b = BUF_INIT(LIMIT_EVENT);
	struct jw w = JW_INIT(&b);
	result_write(r, &r->result);
	if (r->result.failed) {
		/* Thousands of long names: the kept files stay, the event cannot list them. */
		artifacts_result_done(&r->kept);
		result_write(r, &r->result);
	}
	jw_raw(&w, "result", r->result.p, r->result.len);
	int rc = eventlog_append_held(
	        r->d->log, r->session->id, r->id, EVENT_RUN_DONE, b.p, b.len, &r->done_seq, &e);
	if (rc < 0 && r->tries++ % 10 == 0)
		log_err("r=%s: run.done is not written: %s", r->id, e.text);
	bool full = rc == -ENOSPC || rc == -EDQUOT || rc == -EFBIG; /* may have room again */
	return rc == 0 || (!full && r->tries >= RUN_EVENT_TRIES);
}

static void save(struct run *r)
{
	if (!r->done_seq && !write_done(r)) {
		timer_set(r, RUN_RETRY_MS);
		return;
	}
	bool resume_lost = r->has_outcome && r->outcome.resume_lost;
	bool last = r->session->users == 1; /* nothing else will append */
	struct store_finish f = {
	        .run = r->id,
	        .session = r->session->id,
	        .status = run_status_name(r->status),
	        .result = r->result.p,
	        .ended_ms = clock_wall_ms(),
	        .backend = r->harness->backend,
	        .resume = resume_lost      ? ""
	                  : r->has_outcome ? r->outcome.resume
	                                   : NULL,
	        .artifacts = r->kept.files,
	        .nartifacts = r->kept.nfiles,
	        .settled = last ? eventlog_settle(r->d->log, r->session->id) : 0,
	};
	r->replies++;
	store_finish_run(r->d->store, &f, eventlog_sync_fd(r->d->log, r->session->id), on_saved, r);
}

static void do_save(struct run *r)
{
	if (r->deadline.inflight)
		loop_cancel(r->d->loop, &r->deadline);
	if (!r->judged)
		runner_judge(r, RUN_FAILED, "the run ended without an outcome");
	save(r);
}

static void do_finish(struct run *r)
{
	if (r->done_seq)
		eventlog_release(r->d->log, r->session->id, r->done_seq);
	if (r->timer.inflight)
		loop_cancel(r->d->loop, &r->timer);
	runs_finished(r);
}

/* ---- the machine ---- */

static void (*const performers[RUN_EFFECT_COUNT])(struct run *r) = {
        [RUN_EFFECT_MAKE] = do_make,
        [RUN_EFFECT_SEED] = do_seed,
        [RUN_EFFECT_EXEC] = do_exec,
        [RUN_EFFECT_PUMP] = do_pump,
        [RUN_EFFECT_INTERRUPT] = do_interrupt,
        [RUN_EFFECT_KILL] = do_kill,
        [RUN_EFFECT_DRAIN] = do_drain,
        [RUN_EFFECT_COLLECT] = do_collect,
        [RUN_EFFECT_RELEASE] = do_release,
        [RUN_EFFECT_SAVE] = do_save,
        [RUN_EFFECT_FINISH] = do_finish,
};

bool runner_performs(enum run_effect f)
{
	return f < RUN_EFFECT_COUNT && performers[f] != NULL;
}

static void step_one(struct run *r, enum run_event v)
{
	const struct run_rule *rule = run_rule(r->state, v);
	if (!rule) {
		log_debug("r=%s: %s does not count in %s", r->id, run_event_name(v),
		        run_state_name(r->state));
		return;
	}
	log_debug("r=%s: %s -> %s (%s)", r->id, run_state_name(r->state), run_state_name(rule->to),
	        run_event_name(v));
	r->state = rule->to;
	for (int i = 0; i < RUN_EFFECT_COUNT; i++)
		if (rule->effects & RUN_EFFECT_BIT(i))
			performers[i](r);
}

void runner_step(struct run *r, enum run_event v)
{
	assert(r->nevents < ARRAY_LEN(r->events));
	r->events[r->nevents++] = v;
	if (r->stepping)
		return;
	r->stepping = true;
	while (r->nevents) {
		enum run_event first = r->events[0];
		r->nevents--;
		memmove(r->events, r->events + 1, r->nevents * sizeof(*r->events));
		step_one(r, first);
	}
	r->stepping = false;
}

/* ---- life ---- */

void runner_init(struct run *r)
{
	r->state = RUN_STATE_QUEUED;
	r->exec_fd = -1;
	for (int i = 0; i < 3; i++)
		r->fds[i] = -1;
	r->sink.emit = emit_from_driver;
	r->to_stdin = (struct buf)BUF_INIT(2 * (size_t)LIMIT_PROMPT);
	r->stderr_tail = (struct buf)BUF_INIT(2 * RUN_STDERR_TAIL + 2);
	r->result = (struct buf)BUF_INIT(LIMIT_EVENT - 4096);
}

bool runner_idle(const struct run *r)
{
	return !r->replies && !r->deadline.inflight && !r->timer.inflight && !r->stepping &&
	       !r->collecting;
}

void runner_free(struct run *r)
{
	list_remove(&r->link);
	pump_close(r->pump);
	seed_close(r->seed);
	plan_done(&r->plan);
	if (r->has_outcome)
		driver_outcome_done(&r->outcome);
	artifacts_result_done(&r->kept);
	fd_close(r->exec_fd);
	for (int i = 0; i < 3; i++)
		fd_close(r->fds[i]);
	harness_unref(r->harness);
	buf_done(&r->to_stdin);
	buf_done(&r->stderr_tail);
	buf_done(&r->result);
	free(r->prompt);
	free(r->params);
	free(r->filled);
	free(r->system_prompt);
	free(r->error);
	free(r);
}
