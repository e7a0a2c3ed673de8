/*
 * What a run was doing when the supervisor ended without finishing it:
 *
 *	run.done is in the event log: the result was written, the commit was
 *		not: it is committed now.
 *	its jail is there with its program: it goes on (runs_adopt.c).
 *	run.retry is in the log, and no run.started behind it: it waits for that
 *		attempt, as it did.
 *	run.started is in the log, or the record says running: interrupted.
 *	neither: it is queued again, in its old place.
 */
#include "supervisor/runs.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/active.h"
#include "supervisor/artifacts.h"
#include "supervisor/daemon.h"
#include "supervisor/eventlog.h"
#include "supervisor/harnesses.h"
#include "supervisor/hash.h"
#include "supervisor/journal.h"
#include "supervisor/plan.h"
#include "supervisor/result.h"
#include "supervisor/runner.h"
#include "supervisor/runs_private.h"
#include "supervisor/store.h"
#include "supervisor/uploads.h"

#include <errno.h>
#include <string.h>

struct all {
	struct unfinished *items; /* owned */
	size_t n;
};

static void collect(void *ctx, const struct store_run *x)
{
	struct all *a = ctx;
	a->items = xrealloc(a->items, a->n + 1, sizeof(*a->items));
	struct unfinished *f = &a->items[a->n++];
	memset(f, 0, sizeof(*f));
	(void)str_copy(f->id, sizeof(f->id), x->id);
	(void)str_copy(f->session, sizeof(f->session), x->session);
	(void)str_copy(f->harness, sizeof(f->harness), x->harness);
	f->user = xstrdup(x->user);
	f->goal = xstrdup(x->goal);
	f->prompt = xcalloc(1, x->prompt_len + 1);
	memcpy(f->prompt, x->prompt, x->prompt_len);
	f->prompt_len = x->prompt_len;
	f->params = x->params ? xstrdup(x->params) : NULL;
	f->trace = x->trace ? xstrdup(x->trace) : NULL;
	f->pipeline = x->pipeline ? xstrdup(x->pipeline) : NULL;
	(void)str_copy(f->parent, sizeof(f->parent), x->parent ? x->parent : "");
	f->step = x->step;
	f->priority = x->priority;
	f->created_ms = x->created_ms;
	f->started_ms = x->started_ms;
	f->from_seq = x->from_seq;
	f->running = strcmp(x->status, "queued") != 0;
}

/* ---- ending what cannot go on ---- */

static void finish(struct daemon *d, const struct unfinished *f, const char *status,
        const char *result, const struct artifacts_result *kept, int64_t ended_ms)
{
	struct store_finish x = {
	        .run = f->id,
	        .session = f->session,
	        .status = status,
	        .result = result,
	        .ended_ms = ended_ms,
	        .artifacts = kept->files,
	        .nartifacts = kept->nfiles,
	        .place = uploads_place(d->uploads),
	};
	store_finish_run(d->store, &x, eventlog_sync_fd(d->log, f->session), NULL, NULL);
}

static void read_artifacts(const struct json *result, struct artifacts_result *ret)
{
	for (const struct json *a = json_first(json_get(result, "artifacts")); a;
	        a = json_next(a)) {
		ret->files = xrealloc(ret->files, ret->nfiles + 1, sizeof(*ret->files));
		struct artifact *to = &ret->files[ret->nfiles++];
		memset(to, 0, sizeof(*to));
		to->path = xstrdup(json_str(a, "path", ""));
		to->bytes = (uint64_t)json_int(a, "bytes", 0);
		(void)str_copy(to->sha256, sizeof(to->sha256), json_str(a, "sha256", ""));
	}
}

/* run.done was written, its commit was not. */
static bool finish_from_log(struct daemon *d, const struct unfinished *f)
{
	auto_free char *line = eventlog_find(d->log, f->session, f->id, "run.done");
	auto_json struct json *event = line ? json_parse(line, strlen(line), NULL) : NULL;
	const struct json *result = json_get(event, "result");
	const char *status = json_str(result, "status", NULL);
	auto_buf struct buf text = BUF_INIT(LIMIT_EVENT);
	if (!status || json_print(result, &text) < 0)
		return false;
	struct artifacts_result kept = {0};
	read_artifacts(result, &kept);
	finish(d, f, status, text.p, &kept, clock_wall_ms());
	artifacts_result_done(&kept);
	return true;
}

static int read_noted(void *ctx, enum journal_type t, const char *p, size_t n)
{
	struct buf *b = ctx;
	if (t != JOURNAL_RESULT)
		return 0;
	buf_clear(b);
	return buf_put(b, p, n);
}

/* Its agent had ended and its jail was given back; only its changes were still looked for. */
static bool finish_as_noted(struct daemon *d, const struct unfinished *f)
{
	struct err e;
	auto_buf struct buf result = BUF_INIT(LIMIT_EVENT);
	struct journal *j = journal_open(d->journals_fd, f->id, &e);
	int rc = j ? journal_each(j, read_noted, &result, &e) : -ENOENT;
	auto_json struct json *tree =
	        rc == 0 && result.len ? json_parse(result.p, result.len, &e) : NULL;
	const char *status = json_str(tree, "status", NULL);
	if (j && status)
		(void)journal_end(j);
	journal_close(j);
	if (!status)
		return false;
	auto_buf struct buf members = BUF_INIT(LIMIT_EVENT);
	struct jw w = JW_INIT(&members);
	jw_raw(&w, "result", result.p, result.len);
	if (eventlog_append(d->log, f->session, f->id, EVENT_RUN_DONE, members.p, members.len, &e) <
	        0)
		log_err("r=%s: %s", f->id, e.text);
	struct artifacts_result kept = {0};
	read_artifacts(tree, &kept);
	finish(d, f, status, result.p, &kept, clock_wall_ms());
	artifacts_result_done(&kept);
	int at = run_status_by_name(status);
	if (at >= 0)
		(void)stats_done(&d->stats, f->harness, (enum run_status)at);
	log_info("r=%s: was over when the supervisor ended; its changes are not known", f->id);
	return true;
}

static void interrupt(struct daemon *d, const struct unfinished *f, const char *why)
{
	static const struct artifacts_result none;
	struct err e;
	auto_buf struct buf result = BUF_INIT(64 << 10);
	auto_buf struct buf members = BUF_INIT(65 << 10);
	struct result_lost lost = {
	        .run = f->id,
	        .session = f->session,
	        .harness = f->harness,
	        .error = why,
	        .created_ms = f->created_ms,
	        .started_ms = f->started_ms,
	        .ended_ms = clock_wall_ms(),
	};
	result_interrupted(&lost, &result);
	struct jw w = JW_INIT(&members);
	jw_raw(&w, "result", result.p, result.len);
	if (eventlog_append(d->log, f->session, f->id, EVENT_RUN_DONE, members.p, members.len, &e) <
	        0)
		log_err("r=%s: %s", f->id, e.text);
	finish(d, f, run_status_name(RUN_INTERRUPTED), result.p, &none, lost.ended_ms);
	(void)stats_done(&d->stats, f->harness, RUN_INTERRUPTED);
}

/* ---- going on ---- */

struct run *runs_revive(struct runs *rs, struct unfinished *f, struct harness *h, struct session *x)
{
	struct run *r = runs_new_run(rs, h, x);
	memcpy(r->parent, f->parent, sizeof(r->parent));
	r->step = f->step;
	memcpy(r->id, f->id, sizeof(r->id));
	r->prompt = take(f->prompt);
	r->prompt_len = f->prompt_len;
	r->params = take(f->params);
	r->trace = take(f->trace);
	r->created_ms = f->created_ms;
	r->from_seq = f->from_seq;
	r->job.priority = f->priority;
	struct limits limits;
	if (!h->nsteps && plan_check(rs->daemon, h, &limits, NULL) ==
	                          0) /* else it is refused when it starts */
		r->job.need = runs_need(rs, &limits);
	return r;
}

/* ---- between two attempts ---- */

void runs_read_retry(struct run *r, const struct json *event)
{
	const char *ts = json_str(event, "ts", "");
	int64_t told_ms = clock_from_rfc3339(ts, strlen(ts));
	r->attempt = (unsigned)json_int(event, "attempt", 1);
	r->retry_ms = (told_ms < 0 ? 0 : told_ms) + json_int(event, "delayMs", 0);
	if (!json_get(event, "status")) {
		r->lost = true; /* at once, and it does not count */
		return;
	}
	attempts_read(&r->past, event);
	r->former_tokens = r->past.tokens;
	r->former_spent = r->past.spent;
}

static bool is_type(const char *type, size_t n, const char *want)
{
	return n == strlen(want) && memcmp(type, want, n) == 0;
}

static void read_retries(void *ctx, const char *type, size_t type_len, const char *line, size_t n)
{
	if (!is_type(type, type_len, "run.retry"))
		return;
	auto_json struct json *event = json_parse(line, n, NULL);
	runs_read_retry(ctx, event);
}

static void pause_again(struct runs *rs, struct run *r, const struct unfinished *f)
{
	int64_t began_ms = clock_wall_ms() - f->started_ms;
	r->slot_us = clock_mono_us() - (began_ms > 0 ? began_ms : 0) * 1000;
	r->queued_us = r->slot_us - (f->started_ms - f->created_ms) * 1000;
	r->over_us = active_over(r);
	eventlog_each(rs->daemon->log, r->session->id, r->id, r->from_seq, read_retries, r);
	runs_pause_again(rs, r);
}

static void note_pause(void *ctx, const char *type, size_t type_len, const char *line, size_t n)
{
	(void)line;
	(void)n;
	struct unfinished *f = ctx;
	if (is_type(type, type_len, "run.retry"))
		f->pauses = true;
	else if (is_type(type, type_len, "run.started"))
		f->pauses = false;
}

/* A pipeline is what it was when it was accepted. */
static int harness_of(
        struct runs *rs, const struct unfinished *f, struct harness **ret, struct err *e)
{
	if (!f->pipeline)
		return harnesses_get(rs->daemon->harnesses, f->harness, ret, e);
	auto_free char *file = xasprintf("%s.md", f->harness);
	*ret = harness_parse(file, f->pipeline, strlen(f->pipeline), NULL, NULL, e);
	return *ret ? 0 : e->code;
}

/* As it was accepted, among the active ones. */
static int revive(struct runs *rs, struct unfinished *f, struct run **ret, struct err *e)
{
	struct harness *h;
	struct session *x;
	int rc = harness_of(rs, f, &h, e);
	if (rc < 0)
		return rc;
	rc = sessions_hold(rs->daemon->sessions, f->user, f->goal, &x, e);
	if (rc < 0) {
		harness_unref(h);
		return rc;
	}
	*ret = runs_revive(rs, f, h, x);
	list_append(&rs->active[hash_text(f->id) % RUNS_BUCKETS], &(*ret)->link);
	return 0;
}

static int requeue(struct runs *rs, struct unfinished *f, struct err *e)
{
	struct run *r;
	int rc = revive(rs, f, &r, e);
	if (rc == 0 && f->pauses)
		pause_again(rs, r, f);
	else if (rc == 0)
		runs_enqueue(rs, r);
	return rc;
}

/* 1: it had begun, and has its session; 0: it waits; or -errno. */
static int take_up_steps(struct runs *rs, struct unfinished *f, struct err *e)
{
	struct run *r;
	auto_free char *started = eventlog_find(rs->daemon->log, f->session, f->id, "run.started");
	if (!started && !f->running)
		return 0;
	int rc = revive(rs, f, &r, e);
	if (rc < 0)
		return rc;
	runs_steps_revive(r, f->started_ms);
	return 1;
}

/* What they wait for may have gone on, waits again or has been ended by now. */
static void steps_go_on(struct runs *rs)
{
	for (size_t i = 0; i < RUNS_BUCKETS; i++)
		list_for_each (r, &rs->active[i], struct run, link)
			if (r->harness->nsteps && r->slot_us && r->state == RUN_STATE_QUEUED)
				runs_steps_go_on(r);
}

/* true: it is ended, goes on, or cannot be looked at. */
static bool end_or_adopt(struct runs *rs, struct unfinished *f, enum jail_former former)
{
	struct daemon *d = rs->daemon;
	struct err e;
	if (eventlog_open(d->log, f->session, &e) < 0) {
		log_err("r=%s: %s", f->id,
		        e.text); /* stays unfinished; the next start tries again */
		return true;
	}
	if (finish_from_log(d, f) || finish_as_noted(d, f))
		return true;
	/* The jail that may be there is of the attempt before, or its program was not told of yet.
	 */
	eventlog_each(d->log, f->session, f->id, f->from_seq, note_pause, f);
	if (f->pauses)
		return false;
	int rc = f->pipeline ? take_up_steps(rs, f, &e) : runs_adopt(rs, f, former, &e);
	if (rc < 0) {
		auto_free char *why =
		        xasprintf("the supervisor ended while it ran; it cannot go on: %s", e.text);
		interrupt(d, f, why);
	}
	return rc != 0;
}

static const char *const ended[] = {
        [FORMER_NONE] = "the daemon ended while it ran",
        [FORMER_SUPERVISOR] = "the supervisor ended while it ran, and its jail is gone",
        [FORMER_ABANDONED] = "its jail was ended: no supervisor came to take it up",
};

static void recover(struct runs *rs, struct unfinished *f, enum jail_former former)
{
	struct daemon *d = rs->daemon;
	struct err e;
	auto_free char *started = eventlog_find(d->log, f->session, f->id, "run.started");
	/* With agentboxd alive and no jail of it, the program of one that was "running" was never
	 * started: the jail was on its way. */
	bool began = !f->pipeline && !f->pauses &&
	             (started || (f->running && former != FORMER_SUPERVISOR));
	if (began)
		interrupt(d, f, ended[former]);
	else if (requeue(rs, f, &e) < 0)
		interrupt(d, f, e.text);
}

static void free_all(struct all *a)
{
	for (size_t i = 0; i < a->n; i++) {
		free(a->items[i].user);
		free(a->items[i].goal);
		free(a->items[i].prompt);
		free(a->items[i].params);
		free(a->items[i].pipeline);
		free(a->items[i].trace);
	}
	free(a->items);
}

static void nothing(void *ctx, const struct store_run *r)
{
	(void)ctx;
	(void)r;
}

/* Of a session that is deleted, while this was being told of it. */
static bool known(void *ctx, const char *run)
{
	struct runs *rs = ctx;
	return store_run(rs->daemon->store, run, nothing, NULL, NULL) != -ENOENT;
}

int runs_recover(struct runs *rs, enum jail_former former, struct err *e)
{
	struct all a = {0};
	int rc = store_unfinished(rs->daemon->store, collect, &a, e);
	if (rc < 0) {
		free_all(&a);
		return rc;
	}
	size_t rest = 0;
	runs_take_limits(rs);
	/* What goes on has its session and its slot before anything that waited may take them. */
	for (size_t i = 0; i < a.n; i++) {
		bool over = end_or_adopt(rs, &a.items[i], former);
		struct unfinished swap = a.items[i];
		if (over)
			continue;
		a.items[i] = a.items[rest];
		a.items[rest++] = swap;
	}
	runs_adopt_rest(rs);
	for (size_t i = 0; i < rest; i++)
		recover(rs, &a.items[i], former);
	steps_go_on(rs);
	journal_sweep(rs->daemon->journals_fd, known, rs);
	runs_prune_journals(rs, runs_journals_most(rs));
	if (a.n)
		log_info("%zu runs of before were taken up", a.n);
	free_all(&a);
	runs_schedule(rs);
	return 0;
}
