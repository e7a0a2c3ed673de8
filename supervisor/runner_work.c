#include "supervisor/runner_work.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "policy/layers.h"
#include "supervisor/active.h"
#include "supervisor/daemon.h"
#include "supervisor/eventlog.h"
#include "supervisor/policies.h"
#include "supervisor/seed.h"

#include <signal.h>
#include <string.h>

enum {
	GRACE_MS = 3000,      /* from "please stop" to the kill */
	REKILL_MS = 5000,     /* cgroup.kill is asked for again: it is harmless, silence is not */
	CPU_HELD_US = 100000, /* less is a burst at the start of a program, one period long */
};

/* ---- what the jail tells ---- */

static void on_exited(struct jail_watch *w, const struct jail_exited *x)
{
	struct run *r = container_of(w, struct run, watch);
	if (x->exec != r->exec || r->exited)
		return;
	r->exited = true;
	r->exit = *x;
	if (x->error) {
		struct err e;
		char why[JAILS_WHY];
		jails_why(x, why);
		err_set(&e, -x->error, "'%.80s' could not be started: %s", r->plan.command.argv[0],
		        why);
		active_judge(r, RUN_FAILED, e.text);
	}
	active_step(r, RUN_EVENT_EXITED);
}

static void on_limit(struct jail_watch *w, const struct jail_limit *x)
{
	struct run *r = container_of(w, struct run, watch);
	if (r->state < RUN_STATE_SAVING)
		active_emit_limit(r, x->kind == JAIL_LIMIT_INODES ? "inodes" : "disk", x->value);
}

/* What the kernel has counted while the jail lived and tells of without being asked to end it. */
static void tell_counted(struct run *r, const struct jail_gone *x)
{
	if (x->forks_refused)
		active_emit_limit(r, "pids", x->resources.pids_peak);
	if (x->cpu_held_us >= CPU_HELD_US)
		active_emit_limit(r, "cpu", x->cpu_held_us / 1000);
}

static void on_gone(struct jail_watch *w, const struct jail_gone *x)
{
	struct run *r = container_of(w, struct run, watch);
	r->gone = true;
	r->end = *x;
	bool ours = r->state == RUN_STATE_KILLING;
	tell_counted(r, x);
	if (x->end == JAIL_END_OOM || (x->oom_kills && r->exited && r->exit.sig == SIGKILL)) {
		active_emit_limit(r, "memory", x->resources.memory_peak_bytes);
		active_judge(r, RUN_OOM, "the jail was out of memory");
	} else if (!ours) {
		active_judge(r, RUN_FAILED, "the jail ended by itself");
	}
	active_step(r, RUN_EVENT_GONE);
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
	active_emit(r, x->verdict == EGRESS_DENIED ? EVENT_EGRESS_DENIED : EVENT_EGRESS_ALLOWED,
	        b.p, b.len);
}

void runner_work_watch(struct run *r)
{
	r->watch.exited = on_exited;
	r->watch.gone = on_gone;
	r->watch.egress = on_egress;
	r->watch.limit = on_limit;
}

/* ---- its bytes ---- */

static const char *disk_name(uint32_t disk)
{
#define NAME_ROW(sym, name) name,
	static const char *const names[] = {JAIL_DISKS(NAME_ROW)};
#undef NAME_ROW
	return disk < JAIL_DISK_COUNT ? names[disk] : "unknown";
}

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
	jw_str(&w, "disk", disk_name(r->disk));
	jw_int(&w, "jail", (int64_t)r->watch.jail);
	jw_bool(&w, "warm", false);
	jw_int(&w, "attempt", 1);
	active_emit(r, EVENT_RUN_STARTED, b.p, b.len);
}

/* Sends what the driver put into to_stdin. */
static void feed(struct run *r, bool eof)
{
	if (r->pump && (r->to_stdin.len || eof)) {
		int rc = pump_write(r->pump, r->to_stdin.p, r->to_stdin.len, eof);
		if (rc < 0) {
			active_judge(r, RUN_FAILED, "the agent does not read its input");
			active_step(r, RUN_EVENT_END);
		}
	}
	buf_clear(&r->to_stdin);
}

static void keep_stderr(struct run *r, const char *p, size_t n)
{
	struct buf *b = &r->stderr_tail;
	if (n > ACTIVE_STDERR_TAIL) {
		p += n - ACTIVE_STDERR_TAIL;
		n = ACTIVE_STDERR_TAIL;
	}
	(void)buf_put(b, p, n); /* fits: the buffer holds twice the tail */
	(void)buf_putc(b, '\n');
	if (b->len > ACTIVE_STDERR_TAIL)
		buf_consume(b, b->len - ACTIVE_STDERR_TAIL);
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
	active_emit_limit(r, "output", r->plan.output_bytes);
	active_judge(r, RUN_QUOTA, "more output than limits.outputBytes");
	active_step(r, RUN_EVENT_END);
}

static void on_batch(void *ctx, enum pump_stream s)
{
	const struct run *r = ctx;
	if (s == PUMP_STDOUT && r->plan.driver->flush)
		r->plan.driver->flush(r->plan.run);
}

static bool on_ready(void *ctx)
{
	const struct run *r = ctx;
	return !eventlog_behind(r->d->log, r->session->id);
}

static void on_drained(void *ctx)
{
	active_step(ctx, RUN_EVENT_DRAINED);
}

void runner_work_pump(struct run *r)
{
	static const struct pump_calls calls = {
	        .line = on_line,
	        .bytes = on_bytes,
	        .batch = on_batch,
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
		active_judge(r, RUN_FAILED, "the prompt is too large for this agent");
		active_step(r, RUN_EVENT_END);
		return;
	}
	feed(r, eof);
}

/* ---- its end, when it does not come by itself ---- */

static void grace_over(struct run *r)
{
	active_step(r, RUN_EVENT_GRACE_OVER);
}

void runner_work_interrupt(struct run *r)
{
	r->interrupted = true;
	if (r->plan.driver->interrupt(r->plan.run, &r->to_stdin))
		feed(r, false);
	else
		jails_signal(r->d->jails, r->watch.jail, r->exec, SIGTERM);
	active_timer(r, GRACE_MS, grace_over);
}

static void kill_again(struct run *r)
{
	log_warn("r=%s: its jail is not gone yet, killed again", r->id);
	jails_kill(r->d->jails, r->watch.jail);
	active_timer(r, REKILL_MS, kill_again);
}

void runner_work_kill(struct run *r)
{
	if (r->deadline.inflight)
		loop_cancel(r->d->loop, &r->deadline);
	seed_close(take(r->seed));
	r->session->jail = 0; /* nothing joins what is ending */
	jails_kill(r->d->jails, r->watch.jail);
	active_timer(r, REKILL_MS, kill_again);
}
