#include "supervisor/runner_work.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "policy/layers.h"
#include "supervisor/active.h"
#include "supervisor/daemon.h"
#include "supervisor/egress_news.h"
#include "supervisor/eventlog.h"
#include "supervisor/inbound.h"
#include "supervisor/journal.h"
#include "supervisor/policies.h"
#include "supervisor/runner_repo.h"
#include "supervisor/runner_talk.h"
#include "supervisor/seed.h"
#include "supervisor/space.h"
#include "supervisor/traces.h"
#include "supervisor/veiled.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

enum {
	GRACE_MS = 3000,    /* from "please stop" to the kill */
	LINGER_MS = 2000,   /* from an agent's last word and the end of stdin to "please stop" */
	DISMISS_MS = 10000, /* the same of an agent that goes by itself, cut off from the network */
	REKILL_MS = 5000,   /* cgroup.kill is asked for again: it is harmless, silence is not */
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
	if (r->state >= RUN_STATE_SAVING)
		return;
	if (x->kind == JAIL_LIMIT_INODES)
		active_emit_limit(r, "inodes", x->value);
	else
		active_emit_disk(r, x->value, x->left);
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
	egress_totals_add(&r->egress, x);
	auto_buf struct buf b = BUF_INIT(EGRESS_NEWS_MAX);
	struct jw j = JW_INIT(&b);
	egress_news_members(x, &j);
	active_emit(r, x->verdict == EGRESS_DENIED ? EVENT_EGRESS_DENIED : EVENT_EGRESS_ALLOWED,
	        b.p, b.len);
}

static void on_used(struct jail_watch *w, const struct jail_used *x)
{
	struct run *r = container_of(w, struct run, watch);
	r->tokens = r->former_tokens;
	r->spent = r->former_spent;
	tokens_add(&r->tokens, &x->tokens);
	spending_add(&r->spent, &x->spent);
	if (r->journal) {
		journal_state(r->journal)->tokens = r->tokens;
		journal_state(r->journal)->spent = r->spent;
	}
}

/* A request was refused: it cannot go on as it was meant to. */
static void on_budget(struct jail_watch *w, const struct jail_budget *x)
{
	struct run *r = container_of(w, struct run, watch);
	if (r->state >= RUN_STATE_SAVING)
		return;
	double value = (double)x->bound / (x->kind == BUDGET_COST ? 1e6 : 1);
	active_emit_budget(r, budget_kind_name(x->kind), budget_scope_name(x->scope), value);
	active_judge(r, RUN_QUOTA, x->reason);
	active_step(r, RUN_EVENT_END);
}

static void on_lost(struct jail_watch *w, const struct jail_lost *x)
{
	struct run *r = container_of(w, struct run, watch);
	if (r->state >= RUN_STATE_SAVING)
		return;
	auto_buf struct buf b = BUF_INIT(64);
	struct jw j = JW_INIT(&b);
	jw_int(&j, "events", (int64_t)x->events);
	active_emit(r, EVENT_EGRESS_GAP, b.p, b.len);
}

void runner_work_watch(struct run *r)
{
	r->watch.exited = on_exited;
	r->watch.gone = on_gone;
	r->watch.egress = on_egress;
	r->watch.limit = on_limit;
	r->watch.used = on_used;
	r->watch.budget = on_budget;
	r->watch.lost = on_lost;
}

/* ---- its bytes ---- */

static const char *disk_name(uint32_t disk)
{
#define NAME_ROW(sym, name) name,
	static const char *const names[] = {JAIL_DISKS(NAME_ROW)};
#undef NAME_ROW
	return disk < JAIL_DISK_COUNT ? names[disk] : "unknown";
}

/* What the harness leaves of its policy. */
static void write_narrow(const struct harness *h, struct jw *w)
{
	if (!h->egress_only && !h->secrets && !h->read_only)
		return;
	jw_open(w, "narrow", '{');
	jw_texts(w, "egress", h->egress_only);
	jw_texts(w, "secrets", h->secrets);
	jw_texts(w, "readOnly", h->read_only);
	jw_close(w, '}');
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
	write_narrow(r->harness, &w);
	jw_str(&w, "disk", disk_name(r->disk));
	jw_int(&w, "jail", (int64_t)r->watch.jail);
	jw_bool(&w, "warm", r->warm);
	jw_int(&w, "attempt", r->attempt);
	traces_member(r->d->traces, r->id, r->trace, &w);
	active_emit(r, EVENT_RUN_STARTED, b.p, b.len);
}

static void emit_resumed(struct run *r)
{
	if (!resume_any(&r->resume))
		return;
	auto_buf struct buf b = BUF_INIT(1024);
	resume_members(&r->resume, &b);
	active_emit(r, EVENT_SESSION_RESUMED, b.p, b.len);
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

/* The agent has said its last word and stays: it is asked to go, then ended.  The run is what the
 * driver says of it. */
static void lingers_still(struct run *r)
{
	active_step(r, RUN_EVENT_END);
}

static void lingers(struct run *r)
{
	jails_signal(r->d->jails, r->watch.jail, r->exec, SIGTERM);
	active_timer(r, GRACE_MS, lingers_still);
}

static void understood(struct run *r)
{
	journal_driving(r->journal, false);
	if (r->journal && !r->replaying)
		journal_state(r->journal)->deaths = 0;
}

/* It would end now, and stays instead. */
static bool rests(struct run *r)
{
	const struct driver *d = r->plan.driver;
	bool may = r->plan.warm && !r->dismissed && !r->judged && !r->interrupted && !r->exited &&
	           !daemon_closing(r->d);
	r->rests = may ? d->rest(r->plan.run) : NULL;
	if (veiled_has(r->veiled, r->rests))
		free(take(r->rests)); /* it would be kept */
	return r->rests != NULL;
}

static void on_line(void *ctx, enum pump_stream s, const char *p, size_t n, bool whole)
{
	struct run *r = ctx;
	if (s == PUMP_STDERR) {
		keep_stderr(r, p, n);
		journal_driving(r->journal, true);
		if (!r->rests)
			r->plan.driver->error_line(r->plan.run, p, n); /* and agent.raw */
		understood(r);
		return;
	}
	journal_driving(r->journal, true);
	if (r->rests) {
		r->unfit |= !whole || !r->plan.driver->idle(p, n);
		understood(r);
		return;
	}
	bool eof = false;
	r->plan.driver->line(r->plan.run, p, n, whole, &r->to_stdin, &eof);
	bool stays = eof && rests(r);
	understood(r);
	if (stays) {
		runner_talk_feed(r, false);
		active_step(r, RUN_EVENT_RESTED);
		return;
	}
	runner_talk_feed(r, eof);
	if (eof && r->plan.driver->over_at_eof && r->state == RUN_STATE_RUNNING)
		active_timer(r, LINGER_MS, lingers);
	runner_talk_mind(r);
}

static void mind_output(struct run *r)
{
	if (r->replaying || !r->plan.output_bytes || r->output_bytes <= r->plan.output_bytes ||
	        r->judged)
		return;
	active_emit_limit(r, "output", r->plan.output_bytes);
	active_judge(r, RUN_QUOTA, "more output than limits.outputBytes");
	active_step(r, RUN_EVENT_END);
}

static void on_bytes(void *ctx, enum pump_stream s, const char *p, size_t n)
{
	struct run *r = ctx;
	runner_talk_keep(r, s == PUMP_STDOUT ? JOURNAL_STDOUT : JOURNAL_STDERR, p, n);
	r->output_bytes += n;
	if (!r->replaying)
		r->d->stats.output_bytes += n;
	mind_output(r);
}

static void on_busy(void *ctx, enum pump_stream s, bool on)
{
	const struct run *r = ctx;
	if (!r->journal)
		return;
	struct journal_state *kept = journal_state(r->journal);
	if (s == PUMP_STDIN)
		kept->writing = on;
	else
		kept->reading[s] = on;
}

static void on_wrote(void *ctx, size_t n)
{
	const struct run *r = ctx;
	if (r->journal)
		journal_state(r->journal)->stdin_done += n;
}

static void on_stdin_ended(void *ctx)
{
	const struct run *r = ctx;
	jails_stdin_end(r->d->jails, r->watch.jail);
}

static void on_batch(void *ctx, enum pump_stream s)
{
	const struct run *r = ctx;
	if (s != PUMP_STDOUT || !r->plan.driver->flush || r->has_outcome)
		return;
	journal_driving(r->journal, true);
	r->plan.driver->flush(r->plan.run);
	journal_driving(r->journal, false);
}

static bool on_ready(void *ctx)
{
	const struct run *r = ctx;
	/* What is to end does, with what can be written of it. */
	return !eventlog_behind(r->d->log, r->session->id) &&
	       (r->judged || !space_out(r->d->space));
}

static void on_drained(void *ctx)
{
	active_step(ctx, RUN_EVENT_DRAINED);
}

static void on_waits(void *ctx, enum pump_stream s, const char *p, size_t n)
{
	const struct run *r = ctx;
	if (r->journal)
		journal_waits(r->journal, veiled_veil(r->veiled), s, p, n);
}

static void take_waits(struct run *r)
{
	for (enum pump_stream s = PUMP_STDOUT; s <= PUMP_STDERR && r->veiled; s++) {
		char bytes[VEIL_WINDOW];
		size_t n = journal_waited(r->journal, veiled_veil(r->veiled), s, bytes);
		pump_waited(r->pump, s, bytes, n);
	}
}

static const struct pump_calls pump_calls = {
        .line = on_line,
        .bytes = on_bytes,
        .busy = on_busy,
        .wrote = on_wrote,
        .stdin_ended = on_stdin_ended,
        .batch = on_batch,
        .ready = on_ready,
        .waits = on_waits,
        .drained = on_drained,
};

/* Without one it runs as well, and ends with this supervisor. */
static void begin_journal(struct run *r)
{
	struct err e;
	r->journal = journal_new(r->d->journals_fd, r->id, &e);
	if (!r->journal) {
		log_warn("r=%s: %s; it ends with this supervisor", r->id, e.text);
		return;
	}
	struct journal_state *kept = journal_state(r->journal);
	kept->queued_us = r->queued_us;
	kept->slot_us = r->slot_us;
	kept->started_us = r->started_us;
	kept->deadline_us = r->deadline_us;
	kept->before = r->before;
	const struct harness *h = r->harness;
	auto_buf struct buf b = BUF_INIT(2 * (size_t)LIMIT_YAML_FILE);
	(void)buf_put(&b, h->file, strlen(h->file) + 1); /* fits: a path and a file of its limit */
	(void)buf_puts(&b, h->source);
	runner_talk_keep(r, JOURNAL_HARNESS, b.p, b.len);
	buf_clear(&b);
	resume_pack(&r->resume, &b); /* fits, likewise */
	runner_talk_keep(r, JOURNAL_RESUME, b.p, b.len);
	if (r->live)
		runner_talk_keep(r, JOURNAL_LIVE, r->live, strlen(r->live));
}

/* Tells the driver to begin. */
static void begin(struct run *r)
{
	bool eof = false;
	journal_driving(r->journal, true);
	int rc = r->plan.driver->start(r->plan.run, &r->to_stdin, &eof);
	journal_driving(r->journal, false);
	if (rc < 0) {
		active_judge(r, RUN_FAILED, "the prompt is too large for this agent");
		active_step(r, RUN_EVENT_END);
		return;
	}
	runner_talk_feed(r, eof);
}

void runner_work_own(struct run *r, struct pump *p)
{
	r->pump = p;
	pump_pass(p, &pump_calls, r);
}

void runner_work_pump(struct run *r)
{
	if (!r->started_us)
		r->started_us = clock_mono_us();
	begin_journal(r);
	emit_started(r);
	emit_resumed(r);
	if (!r->pump) { /* else it came with the agent that waited */
		r->pump = pump_new_held(r->d->loop, r->fds, &pump_calls, r, 0);
		pump_veil(r->pump, veiled_veil(r->veiled));
		pump_go(r->pump);
	}
	for (int i = 0; i < 3; i++)
		r->fds[i] = -1;
	begin(r);
}

/* Asks the agent by its protocol; false: it has none. */
static bool interrupt(struct run *r)
{
	const struct driver *d = r->plan.driver;
	r->interrupted = true;
	journal_driving(r->journal, true);
	bool asked = d->interrupt && d->interrupt(r->plan.run, &r->to_stdin);
	journal_driving(r->journal, false);
	if (asked)
		runner_talk_feed(r, false);
	return asked;
}

/* ---- where an earlier supervisor was ---- */

static int replay(void *ctx, enum journal_type t, const char *p, size_t n)
{
	struct run *r = ctx;
	switch (t) {
	case JOURNAL_STDOUT:
		pump_replay(r->pump, PUMP_STDOUT, p, n);
		return 0;
	case JOURNAL_STDERR:
		pump_replay(r->pump, PUMP_STDERR, p, n);
		return 0;
	case JOURNAL_INTERRUPT:
		(void)interrupt(r); /* as it went before */
		return 0;
	case JOURNAL_ASKED:
		return runner_talk_asked_again(r, p, n);
	case JOURNAL_SAID:
		return runner_talk_say_again(r, p, n);
	case JOURNAL_HARNESS:
	case JOURNAL_RESUME:
	case JOURNAL_LIVE:   /* its driver has been told */
	case JOURNAL_RESULT: /* its jail is still there: it is collected again */
	case JOURNAL_TYPES:
		return 0;
	}
	return 0;
}

/* It was killed between a read and the note of it. */
static void emit_gap(struct run *r, const char *stream)
{
	auto_buf struct buf b = BUF_INIT(256);
	struct jw w = JW_INIT(&b);
	jw_str(&w, "stream", stream);
	jw_int(&w, "bytes", LIMIT_PUMP_READ);
	active_emit(r, EVENT_OUTPUT_GAP, b.p, b.len);
}

void runner_work_resume(struct run *r)
{
	struct err e;
	struct journal_state *kept = journal_state(r->journal);
	r->pump = pump_new_held(r->d->loop, r->fds, &pump_calls, r, kept->stdin_done);
	for (int i = 0; i < 3; i++)
		r->fds[i] = -1;
	pump_veil(r->pump, veiled_veil(r->veiled));
	r->replaying = true;
	begin(r);
	int rc = journal_each(r->journal, replay, r, &e);
	r->replaying = false;
	take_waits(r);
	if (rc == 0 && kept->writing)
		rc = err_set(&e, -EIO, "what of its input was written is not known");
	if (rc < 0) {
		auto_free char *why = xasprintf("the supervisor ended while it ran; %s", e.text);
		active_judge(r, RUN_INTERRUPTED, why);
		active_step(r, RUN_EVENT_END);
	}
	for (enum pump_stream s = PUMP_STDOUT; s <= PUMP_STDERR; s++)
		if (kept->reading[s])
			emit_gap(r, s == PUMP_STDOUT ? "stdout" : "stderr");
	memset(kept->reading, 0, sizeof(kept->reading));
	if (kept->verifying)
		pump_give_up(r->pump); /* all of it was read */
	pump_go(r->pump);
	mind_output(r);
	runner_talk_mind(r);
}

void runner_work_catch_up(struct run *r)
{
	const struct jail_found *found = &r->adopted->jail;
	const struct journal_state *kept = r->journal ? journal_state(r->journal) : NULL;
	if (kept && kept->judged && !r->judged) {
		active_judge(r, kept->status, kept->why[0] ? kept->why : NULL);
		active_step(r, RUN_EVENT_END);
	}
	static const enum jail_limit_kind kinds[] = {JAIL_LIMIT_DISK, JAIL_LIMIT_INODES};
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		bool inodes = kinds[i] == JAIL_LIMIT_INODES;
		const struct jail_limit met = {.jail = found->jail,
		        .kind = kinds[i],
		        .value = inodes ? found->disk_inodes : found->disk_bytes,
		        .left = found->disk_left};
		if (found->limits_met & kinds[i])
			on_limit(&r->watch, &met);
	}
	if (found->flags & FOUND_EXITED)
		on_exited(&r->watch, &found->exited);
	if (kept && kept->verifying)
		active_step(r, RUN_EVENT_END); /* it had succeeded, however it ended */
	if (found->flags & FOUND_GONE)
		on_gone(&r->watch, &found->gone);
}

void runner_work_hold(struct run *r)
{
	if (r->pump)
		pump_hold(r->pump);
}

/* ---- its end, when it stays ---- */

static void on_rested(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct run *r = ctx;
	(void)fds;
	r->replies--;
	const uint64_t most = r->harness->warm_memory, now = reply->memory_bytes;
	const char *why = reply->err.code ? reply->err.text
	                  : now == 0      ? "its memory cannot be measured"
	                  : now > most    ? "it holds more than warm.memory"
	                                  : NULL;
	if (why)
		log_info("r=%s: its agent does not stay: %s", r->id, why);
	r->end.resources = reply->resources;
	r->memory_bytes = now;
	active_step(r, why ? RUN_EVENT_FAILED : RUN_EVENT_SETTLED);
	active_settle(r);
}

void runner_work_rest(struct run *r)
{
	r->session->jail = 0; /* nothing joins what is over */
	inbound_end_jail(r->d, r->watch.jail);
	r->replies++;
	jails_rest(r->d->jails, r->watch.jail, on_rested, r);
}

void runner_work_dismiss(struct run *r)
{
	bool over = r->plan.driver->over_at_eof;
	r->dismissed = true;
	free(take(r->rests));
	runner_talk_feed(r, true);
	active_timer(r, over ? LINGER_MS : DISMISS_MS, lingers);
}

/* ---- its end, when it does not come by itself ---- */

static void grace_over(struct run *r)
{
	active_step(r, RUN_EVENT_GRACE_OVER);
}

void runner_work_interrupt(struct run *r)
{
	/* In front of lines that are read and not told yet, behind which it is taken up again: it
	 * says nothing by itself, so no event of those changes its number. */
	runner_talk_keep(r, JOURNAL_INTERRUPT, "", 0);
	if (!interrupt(r))
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
	active_untimed(r);
	seed_close(take(r->seed));
	runner_repo_stop(r);
	r->session->jail = 0; /* nothing joins what is ending */
	if (r->watch.jail)    /* else it is gone and released */
		jails_kill(r->d->jails, r->watch.jail);
	active_timer(r, REKILL_MS, kill_again);
}
