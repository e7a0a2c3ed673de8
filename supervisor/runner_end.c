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
#include "supervisor/guard.h"
#include "supervisor/harnesses.h"
#include "supervisor/journal.h"
#include "supervisor/keeper.h"
#include "supervisor/result.h"
#include "supervisor/runner_repo.h"
#include "supervisor/runner_retry.h"
#include "supervisor/runner_talk.h"
#include "supervisor/space.h"
#include "supervisor/store.h"
#include "supervisor/uploads.h"
#include "supervisor/veiled.h"
#include "supervisor/verify.h"

#include <errno.h>
#include <string.h>
#include <fcntl.h>

enum {
	DRAIN_MS = 5000,     /* nothing lives: what is in the pipes takes milliseconds */
	COLLECT_MS = 120000, /* artifacts: 8 GiB at 70 MB/s */
	RETRY_MS = 1000,     /* a full disk: the result is tried again */
	SAY_AGAIN = 60,      /* tries between two lines of the log about it */
	EVENT_TRIES = 30,    /* of writing run.done before the record alone must do */
};

static void give_up_pipes(struct run *r)
{
	if (!r->judged && space_out(r->d->space)) {
		active_timer(r, DRAIN_MS, give_up_pipes); /* it waits for us */
		return;
	}
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

void runner_end_driver(struct run *r)
{
	if (!r->pump || r->has_outcome)
		return;
	r->stays = r->state == RUN_STATE_KEEPING; /* it has done what it was to do */
	struct driver_exit x = {
	        .code = r->exited  ? r->exit.code
	                : r->stays ? 0
	                           : -1,
	        .sig = r->exited ? r->exit.sig : 0,
	        .interrupted = r->interrupted || r->judged,
	};
	journal_driving(r->journal, true);
	r->plan.driver->end(r->plan.run, &x, &r->outcome);
	journal_driving(r->journal, false);
	active_told(r);
	r->has_outcome = true;
	if (veiled_has(r->veiled, r->outcome.resume))
		free(take(r->outcome.resume)); /* it would be kept */
	runner_talk_end(r);
}

static void judge(struct run *r)
{
	if (!r->has_outcome || r->judged)
		return;
	struct err e;
	if (r->outcome.status == DRIVER_SUCCEEDED) {
		bool fails = verify_fails(r->verify, &e);
		active_judge(r, fails ? RUN_FAILED : RUN_SUCCEEDED, fails ? e.text : NULL);
		return;
	}
	if (r->outcome.max_turns && r->harness->max_turns && !r->judged)
		active_hit_turns(r);
	active_judge(r, RUN_FAILED, r->outcome.error ? r->outcome.error : "the agent failed");
}

/* The conversation that it was told to go on with is not there any more: it has not done anything,
 * and can begin a new one. */
static bool begins_anew(const struct run *r)
{
	return !r->judged && !r->stays && r->outcome.resume_lost &&
	       r->outcome.status == DRIVER_FAILED && r->resume.id && !r->lost &&
	       !r->outcome.tool_calls;
}

/* What was not looked at to its end is as good as denied. */
static void block_artifacts(struct run *r, const struct err *e)
{
	struct err other;
	bool denied = e->code == -EKEYREJECTED;
	if (!denied)
		log_warn("r=%s: its artifacts could not be checked: %s", r->id, e->text);
	active_block(r, true, denied ? guard_rule(r->looking) : "unchecked");
	artifacts_result_done(&r->kept);
	if (artifacts_remove(r->d->artifacts_fd, r->id, &other) < 0)
		log_warn("r=%s: %s", r->id, other.text);
}

/* Its last words, whatever became of it: they are in its result. */
static void look_at_words(struct run *r)
{
	struct guard *g = guard_new(r->harness, GUARD_TEXT);
	const char *words[] = {r->outcome.final_text, r->outcome.error};
	bool no = guard_denies(g, r->stderr_tail.len ? r->stderr_tail.p : "", r->stderr_tail.len);
	for (size_t i = 0; i < ARRAY_LEN(words) && !no; i++)
		no = words[i] && guard_denies(g, words[i], strlen(words[i]));
	if (no)
		active_block(r, true, guard_rule(g));
	guard_free(g);
}

/* What is between two attempts is nobody's; the last one has all of it. */
static void collected(struct run *r)
{
	if (!runner_repo_collects(r) || runner_retry_expected(r)) {
		active_step(r, RUN_EVENT_COLLECTED);
		return;
	}
	runner_repo_note(r);
	runner_end_release(r); /* two jails cannot have one workspace */
	runner_repo_collect(r);
}

static void on_collected(void *ctx, struct artifacts_result *kept, const struct err *e)
{
	struct run *r = ctx;
	r->collecting = NULL;
	r->kept = *kept;
	if (e && r->looking)
		block_artifacts(r, e);
	guard_free(take(r->looking));
	if (e && !r->withheld) {
		log_warn("r=%s: %s", r->id, e->text);
		auto_buf struct buf b = BUF_INIT(4096);
		struct jw w = JW_INIT(&b);
		jw_str(&w, "message", e->text);
		jw_str(&w, "code", "artifacts");
		jw_bool(&w, "retryable", false);
		active_emit(r, EVENT_ERROR, b.p, b.len);
	}
	judge(r);
	collected(r);
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
	        r->harness->artifacts, space_for_results(r->d->space), r->looking,
	        veiled_veil(r->veiled), on_collected, r);
	active_timer(r, COLLECT_MS, give_up_collecting);
}

void runner_end_collect(struct run *r)
{
	r->collect_us = clock_mono_us();
	if (r->pump) {
		runner_end_driver(r);
		if (begins_anew(r)) {
			active_step(r, RUN_EVENT_AGAIN);
			return;
		}
		look_at_words(r);
		r->looking = guard_new(r->harness, GUARD_ARTIFACTS);
	}
	if (!r->looking)
		judge(r);
	struct err e; /* what an earlier supervisor has copied of them */
	if (r->adopted && artifacts_remove(r->d->artifacts_fd, r->id, &e) < 0)
		log_warn("r=%s: %s", r->id, e.text);
	if (!r->pump || !r->harness->artifacts || !r->harness->artifacts[0] || r->withheld) {
		guard_free(take(r->looking));
		judge(r);
		collected(r);
		return;
	}
	if (!r->watch.jail) { /* that of its check did not come to be */
		struct artifacts_result none = {0};
		(void)err_set(&e, -ESRCH, "no artifacts: there is no jail with its files");
		on_collected(r, &none, &e);
		return;
	}
	r->replies++;
	jails_worker(r->d->jails, r->watch.jail, on_collect_worker, r);
}

void runner_end_release(struct run *r)
{
	runner_repo_stop(r);
	jails_unwatch(r->d->jails, &r->watch);
	if (r->watch.jail)
		jails_release(r->d->jails, r->watch.jail);
	r->watch.jail = r->session->jail = 0;
}

/* Its jail and its bytes are the keeper's. */
void runner_end_keep(struct run *r)
{
	if (r->gone) {
		runner_end_release(r);
		return;
	}
	struct pump *pump = take(r->pump);
	char *live = take(r->rests);
	struct kept_agent a = {
	        .driver = r->plan.driver,
	        .resume = r->outcome.resume ? xstrdup(r->outcome.resume) : NULL,
	        .live = live,
	        .jail = r->watch.jail,
	        .exec = r->exec,
	        .layers = r->layers,
	        .fallback = r->fallback,
	        .disk = r->disk,
	        .used = r->end.resources,
	        .memory_bytes = r->memory_bytes,
	        .idle_ms = r->harness->warm_idle_ms,
	        .memory_most = r->harness->warm_memory,
	        .pump = pump,
	};
	memcpy(a.session, r->session->id, sizeof(a.session));
	memcpy(a.run, r->id, sizeof(a.run));
	memcpy(a.key, r->plan.key, sizeof(a.key));
	(void)str_copy(a.harness, sizeof(a.harness), r->harness->name); /* a checked name */
	jails_unwatch(r->d->jails, &r->watch);
	bool fit = !r->unfit && !r->exited && r->status == RUN_SUCCEEDED && !daemon_closing(r->d);
	keeper_take(r->d->keeper, &a, fit);
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
	if (r->kept.nfiles)
		uploads_wake(r->d->uploads);
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
	if (r->result.len)
		(void)veil_json(veiled_veil(r->veiled), r->result.p, r->result.len);
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

/* A disk that did not take a file may tell so once, and then no more: they are not tried again. */
static void on_kept(void *ctx, int rc, const struct err *e)
{
	struct run *r = ctx;
	struct err other;
	r->replies--;
	r->kept_synced = true;
	if (rc < 0) {
		log_err("r=%s: its artifacts are lost: %s", r->id, e->text);
		artifacts_lose(&r->kept, "not written to the disk");
		if (artifacts_remove(r->d->artifacts_fd, r->id, &other) < 0)
			log_warn("r=%s: %s", r->id, other.text);
	}
	save(r);
}

static void save(struct run *r)
{
	struct err e;
	/* Before anything names them: whoever reads of one after a power cut finds it whole. */
	if (r->kept.nfiles && !r->kept_synced) {
		r->replies++;
		store_sync_artifacts(
		        r->d->store, r->d->artifacts_fd, r->id, r->kept.nfiles, on_kept, r);
		return;
	}
	if (!r->done_seq && write_done(r, &e) < 0) {
		not_saved(r, e.text);
		return;
	}
	bool resume_lost = r->has_outcome &&
	                   (r->outcome.resume_lost || (r->resume.lost && !r->outcome.resume));
	bool last = r->session->users == 1; /* nothing else will append */
	struct store_finish f = {
	        .run = r->id,
	        .session = r->session->id,
	        .status = run_status_name(r->status),
	        .result = r->result.p,
	        .ended_ms = clock_wall_ms(),
	        .backend = r->harness->backend,
	        .resume = resume_lost                              ? ""
	                  : r->has_outcome && !r->plan.is_volatile ? r->outcome.resume
	                                                           : NULL,
	        .artifacts = r->kept.files,
	        .nartifacts = r->kept.nfiles,
	        .place = uploads_place(r->d->uploads),
	        .asked_repo = r->checkout.of_run || !r->checkout.loaded,
	        .settled = last ? eventlog_settle(r->d->log, r->session->id) : 0,
	};
	r->replies++;
	store_finish_run(r->d->store, &f, eventlog_sync_fd(r->d->log, r->session->id), on_saved, r);
}

void runner_end_save(struct run *r)
{
	active_untimed(r);
	if (r->ask_timer.inflight)
		loop_cancel(r->d->loop, &r->ask_timer);
	if (!r->judged)
		active_judge(r, RUN_FAILED, "the run ended without an outcome");
	if (runner_retry_follows(r)) {
		active_step(r, RUN_EVENT_RETRY);
		return;
	}
	save(r);
	/* Nothing of it lives: others need not wait for the disk.  Where that is full they do: as
	 * many results wait for room as there are slots, and no more. */
	if (!r->d->stats.runs_unsaved && !space_low(r->d->space))
		r->paused(r);
}

/* As the raw log, which nobody waits for: it is synced behind the result. */
static void keep_journal(struct run *r)
{
	struct daemon *d = r->d;
	if (!r->journal)
		return;
	if (r->withheld) { /* the raw log is output, too */
		(void)journal_end(r->journal);
		journal_close(take(r->journal));
		journal_remove(d->journals_fd, r->id);
		return;
	}
	d->journals_bytes += journal_end(r->journal);
	const int fds[] = {journal_sync_fd(r->journal), fcntl(d->journals_fd, F_DUPFD_CLOEXEC, 0)};
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		if (fds[i] >= 0)
			store_sync_later(d->store, fds[i]);
	journal_close(take(r->journal));
}

void runner_end_finish(struct run *r)
{
	keep_journal(r);
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
