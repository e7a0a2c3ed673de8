/*
 * What a run was doing when the supervisor ended without finishing it:
 *
 *	run.done is in the event log: the result was written, the commit was
 *		not: it is committed now.
 *	its jail is there with its program: it goes on (runs_adopt.c).
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
#include "supervisor/result.h"
#include "supervisor/runner.h"
#include "supervisor/runs_private.h"
#include "supervisor/store.h"

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
	d->stats.runs_done[RUN_INTERRUPTED]++;
}

/* ---- going on ---- */

struct run *runs_revive(struct runs *rs, struct unfinished *f, struct harness *h, struct session *x)
{
	struct run *r = runner_new(rs->daemon,
	        &(struct runner_spec){
	                .runs = rs, .harness = h, .session = x, .finished = runs_finished});
	memcpy(r->id, f->id, sizeof(r->id));
	r->prompt = take(f->prompt);
	r->prompt_len = f->prompt_len;
	r->params = take(f->params);
	r->created_ms = f->created_ms;
	r->from_seq = f->from_seq;
	r->job.priority = f->priority;
	return r;
}

static int requeue(struct runs *rs, struct unfinished *f, struct err *e)
{
	struct harness *h;
	struct session *x;
	int rc = harnesses_get(rs->daemon->harnesses, f->harness, &h, e);
	if (rc < 0)
		return rc;
	rc = sessions_hold(rs->daemon->sessions, f->user, f->goal, &x, e);
	if (rc < 0) {
		harness_unref(h);
		return rc;
	}
	struct run *r = runs_revive(rs, f, h, x);
	list_append(&rs->active[hash_text(r->id) % RUNS_BUCKETS], &r->link);
	runs_enqueue(rs, r);
	return 0;
}

/* true: it is ended, goes on, or cannot be looked at. */
static bool end_or_adopt(struct runs *rs, struct unfinished *f)
{
	struct daemon *d = rs->daemon;
	struct err e;
	if (eventlog_open(d->log, f->session, &e) < 0) {
		log_err("r=%s: %s", f->id,
		        e.text); /* stays unfinished; the next start tries again */
		return true;
	}
	if (finish_from_log(d, f))
		return true;
	int rc = runs_adopt(rs, f, &e);
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
	bool began = started || (f->running && former != FORMER_SUPERVISOR);
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
	}
	free(a->items);
}

static bool active(void *ctx, const char *run)
{
	return runs_active(ctx, run) != NULL;
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
		bool over = end_or_adopt(rs, &a.items[i]);
		struct unfinished swap = a.items[i];
		if (over)
			continue;
		a.items[i] = a.items[rest];
		a.items[rest++] = swap;
	}
	runs_adopt_rest(rs);
	for (size_t i = 0; i < rest; i++)
		recover(rs, &a.items[i], former);
	journal_sweep(rs->daemon->journals_fd, active, rs);
	if (a.n)
		log_info("%zu runs of before were taken up", a.n);
	free_all(&a);
	runs_schedule(rs);
	return 0;
}
