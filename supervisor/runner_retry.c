#include "supervisor/runner_retry.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/active.h"
#include "supervisor/daemon.h"
#include "supervisor/guard.h"
#include "supervisor/harnesses.h"
#include "supervisor/journal.h"
#include "supervisor/keeper.h"
#include "supervisor/result.h"
#include "supervisor/verify.h"

#include <string.h>

enum { PAUSE_MOST_MS = 3600000 };

static bool wanted(const struct run *r)
{
	static const uint32_t bits[RUN_STATUS_COUNT] = {
	        [RUN_FAILED] = 1, [RUN_TIMEOUT] = 2, [RUN_OOM] = 4};
	const struct harness *h = r->harness;
	return r->slot_us && !h->nsteps && !r->last_attempt && !r->log_lost && !r->rule[0] &&
	       h->retry_on & bits[r->status] && r->past.failed + 1 < h->max_attempts;
}

static int64_t pause_ms(const struct run *r, uint32_t jitter)
{
	return (int64_t)backoff_ms(
	        r->harness->backoff_ms, PAUSE_MOST_MS, r->past.failed + 1, jitter);
}

static bool in_time(const struct run *r, int64_t ms)
{
	return !r->over_us || clock_mono_us() + ms * 1000 < r->over_us;
}

bool runner_retry_expected(const struct run *r)
{
	return wanted(r) && in_time(r, pause_ms(r, 0)); /* the longest */
}

static void emit_retry(struct run *r, int64_t ms)
{
	auto_buf struct buf b = BUF_INIT(LIMIT_EVENT);
	const char *why = r->error ? r->error : run_status_name(r->status);
	struct jw w = JW_INIT(&b);
	jw_int(&w, "attempt", r->attempt + 1);
	jw_bytes(&w, "reason", why, strlen(why));
	jw_int(&w, "delayMs", ms);
	jw_str(&w, "status", run_status_name(r->status));
	attempts_write(&r->past, &w);
	active_emit(r, EVENT_RUN_RETRY, b.p, b.len);
}

bool runner_retry_follows(struct run *r)
{
	int64_t ms = pause_ms(r, backoff_random());
	if (!wanted(r) || !in_time(r, ms))
		return false;
	struct attempts before = r->past;
	struct jail_resources used = result_used(r);
	attempts_add(&r->past, r->has_outcome ? &r->outcome : NULL, &used, &r->tokens, &r->spent);
	emit_retry(r, ms);
	if (r->log_lost) { /* nobody would know of it */
		r->past = before;
		return false;
	}
	r->retry_ms = clock_wall_ms() + ms;
	r->d->stats.retries++;
	return true;
}

void runner_retry_forget(struct run *r)
{
	plan_done(&r->plan);
	pump_close(take(r->pump));
	if (r->journal)
		(void)journal_end(r->journal); /* whoever reads it looks for the next */
	journal_close(take(r->journal));
	journal_remove(r->d->journals_fd, r->id);
	driver_outcome_done(&r->outcome);
	verify_free(take(r->verify));
	for (int i = 0; i < VOICES; i++)
		guard_free(take(r->voices[i]));
	resume_done(&r->resume);
	free(take(r->filled));
	free(take(r->system_prompt));
	free(take(r->live));
	free(take(r->rests));
	r->before = (struct jail_resources){0};
	r->dismissed = r->unfit = r->warm = false;
	buf_clear(&r->stderr_tail);
	buf_clear(&r->to_stdin);
	r->has_outcome = r->resume_known = r->exited = r->gone = false;
	r->exec = 0;
	r->exit = (struct jail_exited){0};
	r->timer_state = RUN_STATE_COUNT; /* one that still runs is of no state of this attempt */
}

/* Its verdict and what came of it. */
static void forget_end(struct run *r)
{
	struct err e;
	free(take(r->error));
	r->judged = r->interrupted = r->out_of_turns = false;
	r->enforce = (struct enforce){0};
	r->end = (struct jail_gone){0};
	r->memory_bytes = r->output_bytes = 0;
	r->muted = 0;
	r->former_tokens = r->tokens = r->past.tokens;
	r->former_spent = r->spent = r->past.spent;
	artifacts_result_done(&r->kept);
	fd_close(r->exec_fd);
	r->exec_fd = -1;
	keeper_end_claimed(take(r->waited));
	bool keeps = r->harness->artifacts || r->checkout.asked;
	if (keeps && artifacts_remove(r->d->artifacts_fd, r->id, &e) < 0)
		log_warn("r=%s: %s", r->id, e.text);
	checkout_done(&r->checkout);
	r->checkout = (struct checkout){0}; /* read again, as it is then */
	if (r->adopted)
		buf_done(&r->adopted->limits);
	free(take(r->adopted));
}

static void over(struct run *r)
{
	active_step(r, RUN_EVENT_DUE);
}

void runner_retry_pause(struct run *r)
{
	runner_retry_forget(r);
	forget_end(r);
	r->begins_attempt = true;
	r->deadline_us = 0;
	r->paused(r);
	int64_t left = r->retry_ms - clock_wall_ms();
	active_timer(r, left > 0 ? left : 0, over);
}

void runner_retry_due(struct run *r)
{
	r->due(r);
}
