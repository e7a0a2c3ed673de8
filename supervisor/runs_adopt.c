/*
 * Runs of an earlier supervisor whose jails are still there.
 *
 * agentboxd tells of each such jail and gives the ends of its program's stdio.
 * The run is made again from its record, the harness it began with (in its
 * journal) and what agentboxd knows of the jail; then the journal is given to a
 * fresh driver, whose events are dropped as many as the log has already.
 * Whatever jail is not taken that way is killed.
 */
#include "supervisor/runs.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/active.h"
#include "supervisor/daemon.h"
#include "supervisor/eventlog.h"
#include "supervisor/harnesses.h"
#include "supervisor/hash.h"
#include "supervisor/journal.h"
#include "supervisor/runner_start.h"
#include "supervisor/runner_work.h"
#include "supervisor/runs_private.h"
#include "supervisor/verify.h"

#include <errno.h>
#include <string.h>

struct left {
	struct list link; /* in runs.left until it is taken; then, on its way out, in none */
	struct runs *runs;
	struct jail_found jail;
	int fds[3];              /* owned: stdin or -1, stdout, stderr */
	struct jail_watch watch; /* until it is taken, and on its way out */
	struct list events;      /* of struct told: meanwhile */
	struct jail_lost lost;   /* events 0: none */
	struct session *session; /* held until it is gone, or NULL */
};

/* An event of its egress that was kept for this supervisor. */
struct told {
	struct list link; /* in left.events */
	struct jail_egress m;
};

static void left_free(struct left *x)
{
	list_remove(&x->link);
	jails_unwatch(x->runs->daemon->jails, &x->watch);
	list_for_each (t, &x->events, struct told, link)
		free(t);
	for (int i = 0; i < 3; i++)
		fd_close(x->fds[i]);
	free(x);
}

static void on_egress(struct jail_watch *w, const struct jail_egress *m)
{
	struct left *x = container_of(w, struct left, watch);
	struct told *t = xnew(struct told); /* agentboxd bounds them */
	t->m = *m;
	list_append(&x->events, &t->link);
}

static void on_lost(struct jail_watch *w, const struct jail_lost *m)
{
	container_of(w, struct left, watch)->lost = *m;
}

static struct left *left_new(struct runs *rs, const struct jail_found *jail)
{
	struct left *x = xnew(struct left);
	x->runs = rs;
	x->jail = *jail;
	for (int i = 0; i < 3; i++)
		x->fds[i] = -1;
	list_init(&x->link);
	list_init(&x->events);
	return x;
}

void runs_found(struct runs *rs, const struct jail_found *jail, int fds[MSG_FDS])
{
	struct left *x = left_new(rs, jail);
	int from = jail->flags & FOUND_STDIN ? 0 : 1; /* the first that came along */
	for (int i = from; i < 3; i++)
		x->fds[i] = take_fd(fds[i - from]);
	list_append(&rs->left, &x->link);
	x->watch.egress = on_egress;
	x->watch.lost = on_lost;
	jails_watch(rs->daemon->jails, jail->jail, &x->watch);
}

static struct left *find_left(struct runs *rs, const char *run)
{
	list_for_each (x, &rs->left, struct left, link)
		if (strcmp(x->jail.run, run) == 0)
			return x;
	return NULL;
}

/* ---- the harness it began with ---- */

struct source {
	struct harness *harness;
	struct err *e;
};

static int read_harness(void *ctx, enum journal_type t, const char *p, size_t n)
{
	struct source *s = ctx;
	const char *end = t == JOURNAL_HARNESS ? memchr(p, '\0', n) : NULL;
	if (!end)
		return err_set(s->e, -EBADMSG, "its journal does not begin with a harness");
	size_t len = n - (size_t)(end + 1 - p);
	s->harness = harness_parse(p, end + 1, len, NULL, NULL, s->e);
	return s->harness ? -ECANCELED : s->e->code; /* no more records are wanted */
}

/* A program that wrote nothing yet to anyone begins as any other. */
static struct harness *harness_of(
        struct runs *rs, const struct unfinished *f, struct journal *j, struct err *e)
{
	struct source s = {.e = e};
	if (!j)
		return harnesses_get(rs->daemon->harnesses, f->harness, &s.harness, e) < 0
		               ? NULL
		               : s.harness;
	(void)err_set(e, -EBADMSG, "its journal is empty");
	int rc = journal_each(j, read_harness, &s, e);
	return rc == -ECANCELED ? s.harness : NULL;
}

/* What its agent was told of earlier runs, and its driver of an agent that had them. */
static int read_told(void *ctx, enum journal_type t, const char *p, size_t n)
{
	struct run *r = ctx;
	struct err e;
	if (t == JOURNAL_HARNESS)
		return 0;
	if (t == JOURNAL_RESUME && !r->resume_known) {
		r->resume_known = resume_unpack(p, n, &r->resume, &e) == 0;
		return r->resume_known ? 0 : -EBADMSG;
	}
	if (t == JOURNAL_LIVE)
		r->live = xstrndup(p, n);
	return -ECANCELED; /* no more records are wanted */
}

/* ---- what the log has already ---- */

static void count_line(void *ctx, const char *type, size_t type_len, const char *line, size_t n)
{
	struct run *r = ctx;
	char name[32] = "";
	if (type_len < sizeof(name))
		memcpy(name, type, type_len);
	int t = event_by_name(name);
	if (t < 0)
		return;
	r->rule_told |= t == EVENT_GUARDRAIL_BLOCKED;
	r->muted += active_from_agent((enum event_type)t);
	if (t == EVENT_RUN_RETRY) { /* the journal is of the attempt that follows */
		r->muted = 0;
		verify_free(take(r->verify));
		buf_clear(&r->adopted->limits);
		auto_json struct json *retry = json_parse(line, n, NULL);
		runs_read_retry(r, retry);
	}
	bool egress = t == EVENT_EGRESS_DENIED || t == EVENT_EGRESS_ALLOWED;
	if (t != EVENT_LIMIT_HIT && t != EVENT_VERIFY_DONE && !egress)
		return;
	auto_json struct json *event = json_parse(line, n, NULL);
	if (t == EVENT_VERIFY_DONE) {
		verify_free(r->verify);
		r->verify = verify_from(event);
		return;
	}
	if (egress) {
		egress_totals_add_event(&r->egress, event);
		return;
	}
	(void)buf_puts(&r->adopted->limits, json_str(event, "limit", ""));
	(void)buf_putc(&r->adopted->limits, '\n'); /* few, and each only once */
}

/* ---- going on ---- */

static void take_jail(struct run *r, struct left *x)
{
	struct session *s = r->session;
	r->adopted->jail = x->jail;
	r->exec = x->jail.exec;
	active_veil(r, &x->jail.veil);
	r->layers = x->jail.layers;
	r->fallback = x->jail.fallback;
	r->disk = x->jail.disk;
	for (int i = 0; i < 3; i++)
		r->fds[i] = take_fd(x->fds[i]);
	s->jail = x->jail.jail;
	memcpy(s->policy, x->jail.policy, sizeof(s->policy));
	runner_work_watch(r);
	jails_unwatch(r->d->jails, &x->watch);
	jails_watch(r->d->jails, x->jail.jail, &r->watch);
}

static void tell_events(struct run *r, struct left *x)
{
	list_for_each (t, &x->events, struct told, link)
		r->watch.egress(&r->watch, &t->m);
	if (x->lost.events > 0)
		r->watch.lost(&r->watch, &x->lost);
}

/* Times and sums.  Of the jail where there is no journal: it was made at once when the run got its
 * slot. */
static void take_kept(struct run *r)
{
	const struct journal_state *kept = r->journal ? journal_state(r->journal) : NULL;
	int64_t made_us = clock_mono_us() - r->adopted->jail.age_ms * 1000;
	r->queued_us = kept ? kept->queued_us : made_us;
	r->slot_us = kept ? kept->slot_us : made_us;
	r->started_us = kept ? kept->started_us : 0;
	if (kept) {
		r->tokens = kept->tokens;
		r->spent = kept->spent;
		r->before = kept->before;
	}
	r->over_us = active_over(r);
	active_timed(r, kept ? kept->deadline_us : made_us + (int64_t)r->plan.timeout_ms * 1000);
}

static void go_on(struct runs *rs, struct run *r, struct left *x)
{
	take_jail(r, x);
	take_kept(r);
	bool began = r->journal != NULL;
	if (began)
		eventlog_each(rs->daemon->log, r->session->id, r->id, r->from_seq, count_line, r);
	list_append(&rs->active[hash_text(r->id) % RUNS_BUCKETS], &r->link);
	const struct sched_ask ask = runs_ask(r);
	sched_resume(rs->sched, &r->job, runs_lane(r), &ask, clock_mono_us());
	log_info("r=%s: goes on in jail %llu%s", r->id, (unsigned long long)r->session->jail,
	        r->session->jail ? "" : ", that is, with its check");
	active_step(r, began ? RUN_EVENT_ADOPTED : RUN_EVENT_STARTED);
	tell_events(r, x);
	left_free(x);
	runner_work_catch_up(r);
}

static bool lane_taken(const struct unfinished *f, struct session *s)
{
	const struct sched_session *lane = f->parent[0] ? session_lane(s) : &s->lane;
	return lane->busy || lane->paused;
}

/* Takes the journal. */
static int adopt(
        struct runs *rs, struct unfinished *f, struct left *x, struct journal *j, struct err *e)
{
	struct session *s = NULL;
	struct harness *h = harness_of(rs, f, j, e);
	if (!h) {
		journal_close(j);
		return e->code;
	}
	int rc = sessions_hold(rs->daemon->sessions, f->user, f->goal, &s, e);
	if (rc == 0 && lane_taken(f, s)) {
		rc = err_set(e, -EBUSY, "another run of its session goes on");
		sessions_drop(rs->daemon->sessions, s);
	}
	if (rc < 0) {
		harness_unref(h);
		journal_close(j);
		return rc;
	}
	struct run *r = runs_revive(rs, f, h, s);
	r->journal = j;
	r->adopted = xnew(struct adopted);
	r->adopted->limits = (struct buf)BUF_INIT(4096);
	if (j)
		rc = journal_each(j, read_told, r, e);
	journal_driving(j, true);
	rc = !j || ((rc == 0 || rc == -ECANCELED) && r->resume_known)
	             ? runner_start_plan(r, e)
	             : err_set(e, -EBADMSG, "its journal does not say what its agent was told");
	journal_driving(j, false);
	if (rc < 0) {
		sessions_drop(rs->daemon->sessions, take(r->session));
		active_free(r);
		return rc;
	}
	go_on(rs, r, x);
	return 1;
}

/* Its agent's jail was released already, for its work to be checked: what agentboxd would have told
 * is in the journal, and so is all that the agent has printed. */
static int adopt_checked(struct runs *rs, struct unfinished *f, struct err *e)
{
	struct journal *j = journal_open(rs->daemon->journals_fd, f->id, e);
	if (!j || !journal_state(j)->verifying) {
		journal_close(j);
		return 0;
	}
	struct left *x = left_new(rs, &journal_state(j)->agent);
	x->jail.jail = x->jail.gone.jail = 0;
	for (int i = 1; i < 3; i++) {
		x->fds[i] = journal_sync_fd(j); /* of something: nothing is read of it */
		if (x->fds[i] >= 0)
			continue;
		int rc = err_set(e, x->fds[i], "its output: %s", strerror(-x->fds[i]));
		journal_close(j);
		left_free(x);
		return rc;
	}
	int rc = adopt(rs, f, x, j, e);
	if (rc < 0)
		left_free(x);
	return rc;
}

int runs_adopt(struct runs *rs, struct unfinished *f, enum jail_former former, struct err *e)
{
	struct daemon *d = rs->daemon;
	struct left *x = find_left(rs, f->id);
	if (!x && f->running && former == FORMER_SUPERVISOR)
		return adopt_checked(rs, f, e);
	if (!x || !(x->jail.flags & FOUND_EXEC))
		return 0;
	auto_free char *started = eventlog_find(d->log, f->session, f->id, "run.started");
	if (!started && x->jail.flags & FOUND_CLAIMED)
		return 0; /* the agent has had others, and was not told of this one */
	if (x->fds[1] < 0 || x->fds[2] < 0)
		return err_set(e, -EMFILE, "agentboxd has lost the ends of its output");
	struct journal *j = started ? journal_open(d->journals_fd, f->id, e) : NULL;
	if (started && !j)
		return e->code;
	if (j && journal_deaths(j, e) < 0) {
		journal_close(j);
		return e->code;
	}
	return adopt(rs, f, x, j, e);
}

/* ---- what nobody takes ---- */

static void let_go(struct left *x)
{
	struct runs *rs = x->runs;
	jails_release(rs->daemon->jails, x->jail.jail);
	if (x->session)
		runs_let_session(rs, x->session);
	left_free(x);
}

static void on_gone(struct jail_watch *w, const struct jail_gone *gone)
{
	(void)gone;
	let_go(container_of(w, struct left, watch));
}

static void discard(struct left *x)
{
	struct runs *rs = x->runs;
	struct err e;
	list_remove(&x->link);
	jails_unwatch(rs->daemon->jails, &x->watch);
	x->watch.egress = NULL;
	x->watch.lost = NULL;
	if (x->jail.flags & FOUND_GONE) {
		let_go(x);
		return;
	}
	/* Its workspace is in use until the last process is gone. */
	if (runs_keep_session(rs, x->jail.session, &x->session, &e) < 0)
		log_debug("jail %llu: %s", (unsigned long long)x->jail.jail, e.text);
	x->watch.gone = on_gone;
	jails_watch(rs->daemon->jails, x->jail.jail, &x->watch);
	jails_kill(rs->daemon->jails, x->jail.jail);
}

void runs_adopt_rest(struct runs *rs)
{
	list_for_each (x, &rs->left, struct left, link) {
		log_info("jail %llu of run %s is not taken up and ends",
		        (unsigned long long)x->jail.jail, x->jail.run);
		discard(x);
	}
}
