#include "supervisor/runner_end.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/active.h"
#include "supervisor/daemon.h"
#include "supervisor/eventlog.h"
#include "supervisor/harnesses.h"
#include "supervisor/journal.h"
#include "supervisor/result.h"
#include "supervisor/runner_talk.h"
#include "supervisor/store.h"

#include <errno.h>

enum {
	DRAIN_MS = 5000,     /* nothing lives: what is in the pipes takes milliseconds */
	COLLECT_MS = 120000, /* artifacts: 8 GiB at 70 MB/s */
	RETRY_MS = 1000,     /* a full disk: the result is tried again */
	SAY_AGAIN = 60,      /* tries between two lines of the log about it */
	EVENT_TRIES = 30,    /* of writing run.done before the record alone must do */
};

static void give_up_pipes(struct run *r)
{
	log_warn("r=%s: a pipe stays open though nothing lives", r->id);
	pump_give_up(r->pump);
}

void runner_end_drain(struct run *r)
{
	if (!r->pump || pump_drained(r->pump))
		active_step(r, RUN_EVENT_DRAINED);
	else
		active_timer(r, DRAIN_MS, give_up_pipes);
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
	runner_talk_end(r);
	if (r->outcome.status == DRIVER_SUCCEEDED) {
		active_judge(r, RUN_SUCCEEDED, NULL);
		return;
	}
	const char *why = r->outcome.error ? r->outcome.error : "the agent failed";
	auto_free char *lost = r->outcome.resume_lost
	                               ? xasprintf("the agent has lost this session's conversation "
	                                           "(%s); the next run begins a new one",
	                                         why)
	                               : NULL;
	active_judge(r, RUN_FAILED, lost ? lost : why);
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
		active_emit(r, EVENT_ERROR, b.p, b.len);
	}
	active_step(r, RUN_EVENT_COLLECTED);
	active_settle(r);
}

static void give_up_collecting(struct run *r)
{
	if (r->collecting)
		artifacts_abort(r->collecting);
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
	active_timer(r, COLLECT_MS, give_up_collecting);
}

void runner_end_collect(struct run *r)
{
	if (r->pump)
		judge_outcome(r);
	if (!r->pump || !r->harness->artifacts || !r->harness->artifacts[0]) {
		active_step(r, RUN_EVENT_COLLECTED);
		return;
	}
	struct err e; /* what an earlier supervisor has copied of them */
	if (r->adopted && artifacts_remove(r->d->artifacts_fd, r->id, &e) < 0)
		log_warn("r=%s: %s", r->id, e.text);
	r->replies++;
	jails_worker(r->d->jails, r->watch.jail, on_collect_worker, r);
}

void runner_end_release(struct run *r)
{
	jails_unwatch(r->d->jails, &r->watch);
	jails_release(r->d->jails, r->watch.jail);
	r->session->jail = 0;
}

static void save(struct run *r);

/* Nothing is told before it is durable: it keeps its place, and says so, until the disk has room
 * again. */
static void not_saved(struct run *r, const char *why)
{
	if (!r->unsaved)
		r->d->stats.runs_unsaved++;
	r->unsaved = true;
	if (r->save_tries++ % SAY_AGAIN == 0)
		log_err("r=%s: its result is not saved and keeps its place: %s", r->id, why);
	active_timer(r, RETRY_MS, save);
}

static void on_saved(void *ctx, int rc, const struct err *e)
{
	struct run *r = ctx;
	r->replies--;
	if (rc < 0) {
		not_saved(r, e->text);
		return;
	}
	active_step(r, RUN_EVENT_SAVED);
	active_settle(r);
}

/* Writes run.done, hidden.  0 also when it is given up because no later try can succeed. */
static int write_done(struct run *r, struct err *e)
{
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
	        r->d->log, r->session->id, r->id, EVENT_RUN_DONE, b.p, b.len, &r->done_seq, e);
	bool full = rc == -ENOSPC || rc == -EDQUOT || rc == -EFBIG; /* may have room again */
	if (rc == 0 || full || ++r->tries < EVENT_TRIES)
		return rc;
	if (r->tries == EVENT_TRIES)
		log_err("r=%s: run.done is not written, the record alone must do: %s", r->id,
		        e->text);
	return 0;
}

static void save(struct run *r)
{
	struct err e;
	if (!r->done_seq && write_done(r, &e) < 0) {
		not_saved(r, e.text);
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

void runner_end_save(struct run *r)
{
	if (r->deadline.inflight)
		loop_cancel(r->d->loop, &r->deadline);
	if (r->ask_timer.inflight)
		loop_cancel(r->d->loop, &r->ask_timer);
	if (!r->judged)
		active_judge(r, RUN_FAILED, "the run ended without an outcome");
	save(r);
}

void runner_end_finish(struct run *r)
{
	journal_close(take(r->journal));
	journal_remove(r->d->journals_fd, r->id);
	if (r->done_seq)
		eventlog_release(r->d->log, r->session->id, r->done_seq);
	if (r->timer.inflight)
		loop_cancel(r->d->loop, &r->timer);
	if (r->unsaved) {
		r->d->stats.runs_unsaved--;
		log_info("r=%s: its result is saved now", r->id);
	}
	r->finished(r);
}
