#include "supervisor/sessions.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "policy/ledger.h"
#include "supervisor/artifacts.h"
#include "supervisor/daemon.h"
#include "supervisor/eventlog.h"
#include "supervisor/hash.h"
#include "supervisor/jails.h"
#include "supervisor/keeper.h"
#include "supervisor/journal.h"
#include "supervisor/policies.h"
#include "supervisor/quota.h"
#include "supervisor/store.h"
#include "supervisor/traces.h"
#include "supervisor/uploads.h"
#include "supervisor/webhooks.h"

#include <string.h>

enum { BUCKETS = 1024, LIST_MAX = 1000 };

struct sessions {
	struct daemon *daemon;     /* borrowed */
	struct list live[BUCKETS]; /* session.link, by hash of the id */
	struct list deletions;     /* deletion.link */
	sessions_room_fn *room;    /* NULL: there may be any number */
	void *room_ctx;
};

/* A session on its way out. */
struct deletion {
	struct list link; /* in sessions.deletions */
	struct sessions *sessions;
	char id[ID_MAX];
	char (*runs)[ID_MAX]; /* owned: whose artifacts go */
	size_t nruns;
	sessions_done_fn *done;
	void *ctx;
};

/* ---- life ---- */

struct sessions *sessions_new(struct daemon *d)
{
	struct sessions *s = xnew(struct sessions);
	s->daemon = d;
	for (size_t i = 0; i < BUCKETS; i++)
		list_init(&s->live[i]);
	list_init(&s->deletions);
	return s;
}

static void session_free(struct session *x)
{
	list_remove(&x->link);
	free(x->user);
	free(x->goal);
	free(x);
}

void sessions_free(struct sessions *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		list_for_each (x, &s->live[i], struct session, link)
			session_free(x);
	list_for_each (x, &s->deletions, struct deletion, link) {
		free(x->runs);
		free(x);
	}
	free(s);
}

/* ---- names ---- */

static int utf8_follow(unsigned char c)
{
	return c < 0x80 ? 0 : c < 0xc2 ? -1 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : c < 0xf5 ? 3 : -1;
}

int session_part_check(const char *what, const char *text, struct err *e)
{
	if (!text || !*text)
		return err_set(e, -EINVAL, "%s is empty", what);
	if (strlen(text) > SESSION_PART_MAX)
		return err_set(e, -EINVAL, "%s is longer than %d bytes", what, SESSION_PART_MAX);
	for (const unsigned char *p = (const unsigned char *)text; *p;) {
		if (*p < 0x20 || *p == 0x7f)
			return err_set(e, -EINVAL, "%s has a control character", what);
		int follow = utf8_follow(*p++);
		while (follow > 0 && (*p & 0xc0) == 0x80) {
			follow--;
			p++;
		}
		if (follow)
			return err_set(e, -EINVAL, "%s is not UTF-8", what);
	}
	return 0;
}

int session_owner_check(const char *owner, struct err *e)
{
	char tenant[NAME_MAX_LEN];
	const char *user = owner_user(owner);
	owner_tenant(owner, tenant);
	if (user != owner && !name_valid(tenant))
		return err_set(e, -EINVAL, "session.userId is of no tenant that can be");
	return session_part_check("session.userId", user, e);
}

_Static_assert((int)ACCOUNT_ID >= (int)OWNER_MAX, "an owner is an account's");

/* ---- in memory ---- */

struct session *sessions_live(struct sessions *s, const char *id)
{
	list_for_each (x, &s->live[hash_text(id) % BUCKETS], struct session, link)
		if (strcmp(x->id, id) == 0)
			return x;
	return NULL;
}

/* Only sessions with runs are here, so a walk is short; the pair is looked for once a run. */
static struct session *live_pair(struct sessions *s, const char *user, const char *goal)
{
	for (size_t i = 0; i < BUCKETS; i++)
		list_for_each (x, &s->live[i], struct session, link)
			if (strcmp(x->user, user) == 0 && strcmp(x->goal, goal) == 0)
				return x;
	return NULL;
}

static bool deleting(const struct sessions *s, const char *id)
{
	list_for_each (x, &s->deletions, struct deletion, link)
		if (strcmp(x->id, id) == 0)
			return true;
	return false;
}

struct known {
	bool seeded, ready;
};

static void got_known(void *ctx, const struct store_session *s)
{
	*(struct known *)ctx = (struct known){s->seeded, s->evicted_ms == 0};
}

struct wanted {
	const char *user, *goal;
	const char *fresh; /* id of a new one, or NULL */
	bool guarded;      /* there has to be room */
};

static int hold(struct sessions *s, const struct wanted *want, struct session **ret, struct err *e);

int sessions_hold(
        struct sessions *s, const char *user, const char *goal, struct session **ret, struct err *e)
{
	return hold(s, &(struct wanted){.user = user, .goal = goal}, ret, e);
}

int sessions_hold_fresh(struct sessions *s, const char *user, const char *goal, const char *fresh,
        struct session **ret, struct err *e)
{
	return hold(s, &(struct wanted){user, goal, fresh, true}, ret, e);
}

/* Its id, and what is known of it.  A new one gets an id. */
static int look_up(struct sessions *s, const struct wanted *want, char id[ID_MAX],
        struct known *ret, struct err *e)
{
	*ret = (struct known){.ready = false};
	int rc = store_session_id(s->daemon->store, want->user, want->goal, id, e);
	if (rc == -ENOENT && want->fresh)
		(void)str_copy(id, ID_MAX, want->fresh); /* an id */
	else if (rc == -ENOENT)
		id_new("ses", id);
	else if (rc == 0)
		rc = store_session(s->daemon->store, id, got_known, ret, e);
	return rc == -ENOENT ? 0 : rc;
}

static int hold(struct sessions *s, const struct wanted *want, struct session **ret, struct err *e)
{
	const char *user = want->user, *goal = want->goal;
	int rc = session_owner_check(user, e);
	if (rc == 0)
		rc = session_part_check("session.goalId", goal, e);
	if (rc < 0)
		return rc;
	struct session *x = live_pair(s, user, goal);
	if (x) {
		x->users++;
		*ret = x;
		return 0;
	}
	char id[ID_MAX];
	struct known known;
	rc = look_up(s, want, id, &known, e);
	if (rc < 0)
		return rc;
	if (deleting(s, id))
		return err_set(e, -EBUSY, "session %s is being deleted", id);
	if (want->guarded && !known.ready && s->room)
		rc = s->room(s->room_ctx, e);
	if (rc < 0)
		return rc;
	x = xnew(struct session);
	memcpy(x->id, id, sizeof(x->id));
	x->user = xstrdup(user);
	x->goal = xstrdup(goal);
	x->seeded = known.seeded;
	x->coming = want->guarded && !known.ready;
	x->users = 1;
	sched_session_init(&x->lane);
	sched_session_init(&x->steps);
	list_append(&s->live[hash_text(id) % BUCKETS], &x->link);
	*ret = x;
	return 0;
}

struct pair {
	char *user, *goal; /* owned */
};

static void got_pair(void *ctx, const struct store_session *s)
{
	struct pair *p = ctx;
	p->user = xstrdup(s->user);
	p->goal = xstrdup(s->goal);
}

int sessions_hold_id(struct sessions *s, const char *id, struct session **ret, struct err *e)
{
	struct pair p = {0};
	int rc = store_session(s->daemon->store, id, got_pair, &p, e);
	if (rc == 0)
		rc = sessions_hold(s, p.user, p.goal, ret, e);
	free(p.user);
	free(p.goal);
	return rc;
}

void sessions_drop(struct sessions *s, struct session *x)
{
	(void)s;
	if (x && --x->users == 0)
		session_free(x);
}

size_t sessions_count(struct sessions *s)
{
	return store_session_count(s->daemon->store);
}

/* ---- how many there may be ---- */

void sessions_guard(struct sessions *s, sessions_room_fn *room, void *ctx)
{
	s->room = room;
	s->room_ctx = ctx;
}

/* The store knows of its first run by now, or not. */
static bool still_coming(const struct sessions *s, struct session *x)
{
	struct err e;
	struct known known = {.ready = false};
	if (x->coming && store_session(s->daemon->store, x->id, got_known, &known, &e) == 0)
		x->coming = !known.ready;
	return x->coming;
}

size_t sessions_ready(const struct sessions *s)
{
	size_t n = store_ready_count(s->daemon->store);
	for (size_t i = 0; i < BUCKETS; i++)
		list_for_each (x, &s->live[i], struct session, link)
			n += still_coming(s, x);
	return n;
}

size_t sessions_live_count(const struct sessions *s)
{
	size_t n = 0;
	for (size_t i = 0; i < BUCKETS; i++)
		list_for_each (x, &s->live[i], struct session, link)
			n++;
	return n;
}

bool sessions_idle(const struct sessions *s, const char *id)
{
	struct sessions *all = (struct sessions *)(uintptr_t)s;
	return !sessions_live(all, id) && !deleting(s, id);
}

static void nothing(void *ctx, const struct store_session *s)
{
	(void)ctx;
	(void)s;
}

void sessions_pin(
        struct sessions *s, const char *id, bool pinned, sessions_pinned_fn *done, void *ctx)
{
	struct err e;
	int rc = store_session(s->daemon->store, id, nothing, NULL, &e);
	if (rc < 0)
		done(ctx, rc, &e);
	else
		store_pin_session(s->daemon->store, id, pinned, done, ctx);
}

/* ---- JSON ---- */

struct showing {
	struct sessions *sessions;
	bool disk; /* with what is known of that */
	struct jw w;
	char last[ID_MAX];
	size_t n;
};

static void when(struct jw *w, const char *key, int64_t ms)
{
	char text[CLOCK_TEXT_MAX];
	clock_rfc3339(ms, text);
	jw_str(w, key, text);
}

static void show_repo(struct store *st, const char *session, struct jw *w)
{
	struct err e;
	struct store_repo x = {0};
	if (store_repo(st, session, &x, &e) < 0)
		return;
	jw_open(w, "repo", '{');
	jw_str(w, "source", x.source);
	jw_str(w, "base", x.base);
	jw_str(w, "ref", x.ref[0] ? x.ref : NULL);
	jw_close(w, '}');
	store_repo_done(&x);
}

static void show(void *ctx, const struct store_session *x)
{
	struct showing *v = ctx;
	const struct session *live = sessions_live(v->sessions, x->id);
	jw_open(&v->w, NULL, '{');
	jw_str(&v->w, "sessionId", x->id);
	owner_json(&v->w, x->user);
	jw_str(&v->w, "goalId", x->goal);
	when(&v->w, "createdAt", x->created_ms);
	when(&v->w, "usedAt", x->used_ms);
	jw_int(&v->w, "runs", (int64_t)x->runs);
	jw_bool(&v->w, "active", live != NULL);
	jw_bool(&v->w, "pinned", x->pinned);
	if (x->evicted_ms)
		when(&v->w, "evictedAt", x->evicted_ms);
	const struct daemon *d = v->sessions->daemon;
	show_repo(d->store, x->id, &v->w);
	const struct jail_live *jail = live && live->jail ? jails_find(d->jails, live->jail) : NULL;
	if (jail) {
		jw_int(&v->w, "jail", (int64_t)jail->jail);
		policies_jail_ports_json(d->policies, jail->policy, &v->w);
	}
	if (v->disk)
		quota_json(v->sessions->daemon, x->id, &v->w);
	jw_close(&v->w, '}');
	(void)str_copy(v->last, sizeof(v->last), x->id);
	v->n++;
}

int sessions_show(struct sessions *s, const char *id, struct buf *json, struct err *e)
{
	struct showing v = {.sessions = s, .w = JW_INIT(json)};
	return store_session(s->daemon->store, id, show, &v, e);
}

int sessions_show_disk(struct sessions *s, const char *id, struct buf *json, struct err *e)
{
	struct showing v = {.sessions = s, .w = JW_INIT(json), .disk = true};
	return store_session(s->daemon->store, id, show, &v, e);
}

int sessions_list(struct sessions *s, const struct sessions_filter *f, struct buf *json,
        char ret_next[ID_MAX], struct err *e)
{
	unsigned limit = f->limit && f->limit < LIST_MAX ? f->limit : LIST_MAX;
	struct showing v = {.sessions = s, .w = JW_INIT(json)};
	int rc = store_sessions(
	        s->daemon->store, f->user, f->goal, f->view, f->cursor, limit, show, &v, e);
	if (rc == 0)
		(void)str_copy(ret_next, ID_MAX, v.n == limit ? v.last : "");
	return rc;
}

/* ---- making one without a run ---- */

struct making {
	struct sessions *sessions;
	struct session *session;
	sessions_made_fn *done;
	void *ctx;
};

static void made(void *ctx, int rc, const struct err *e)
{
	auto_free struct making *m = ctx;
	m->session->makers--;
	m->done(m->ctx, rc, m->session->id, e);
	sessions_drop(m->sessions, m->session);
}

void sessions_make(
        struct sessions *s, const char *user, const char *goal, sessions_made_fn *done, void *ctx)
{
	struct err e;
	struct session *x;
	int rc = sessions_hold_fresh(s, user, goal, NULL, &x, &e);
	if (rc < 0) {
		done(ctx, rc, NULL, &e);
		return;
	}
	struct making *m = xnew(struct making);
	*m = (struct making){s, x, done, ctx};
	x->makers++;
	struct store_session row = {
	        .id = x->id, .user = x->user, .goal = x->goal, .created_ms = clock_wall_ms()};
	store_add_session(s->daemon->store, &row, made, m);
}

/* ---- deleting ---- */

static void deletion_end(struct deletion *x, int rc, const struct err *e)
{
	list_remove(&x->link);
	if (x->done)
		x->done(x->ctx, rc, e);
	free(x->runs);
	free(x);
}

/* The records are gone: what is left of files belongs to nobody, so a failure is only logged. */
static void forgotten(void *ctx, int rc, const struct err *e)
{
	struct deletion *x = ctx;
	struct daemon *d = x->sessions->daemon;
	struct err why;
	for (size_t i = 0; rc == 0 && i < x->nruns; i++) {
		if (artifacts_remove(d->artifacts_fd, x->runs[i], &why) < 0)
			log_warn("s=%s: %s", x->id, why.text);
		journal_remove(d->journals_fd, x->runs[i]);
	}
	if (rc == 0 && eventlog_remove(d->log, x->id, &why) < 0)
		log_warn("s=%s: %s", x->id, why.text);
	uploads_wake(d->uploads);
	deletion_end(x, rc, e);
}

static void removed(void *ctx, const struct jail_reply *r, int fds[MSG_FDS])
{
	(void)fds;
	struct deletion *x = ctx;
	if (r->err.code && r->err.code != -ENOENT) {
		deletion_end(x, r->err.code, &r->err);
		return;
	}
	webhooks_forget(x->sessions->daemon->webhooks, x->id);
	traces_forget(x->sessions->daemon->traces, x->id);
	store_delete_session(x->sessions->daemon->store, x->id, forgotten, x);
}

static void remove_now(void *ctx)
{
	struct deletion *x = ctx;
	jails_session_delete(x->sessions->daemon->jails, x->id, removed, x);
}

static void count_run(void *ctx, const struct store_run *r)
{
	struct deletion *x = ctx;
	x->runs = xrealloc(x->runs, x->nruns + 1, sizeof(*x->runs));
	(void)str_copy(x->runs[x->nruns++], ID_MAX, r->id);
}

static int may_delete(struct sessions *s, const char *id, struct err *e)
{
	int rc = store_session(s->daemon->store, id, nothing, NULL, e);
	if (rc < 0)
		return rc;
	if (sessions_live(s, id))
		return err_set(e, -EBUSY,
		        "session %s is in use: end its runs, commands and requests for files first",
		        id);
	return deleting(s, id) ? err_set(e, -EBUSY, "session %s is being deleted", id) : 0;
}

void sessions_delete(struct sessions *s, const char *id, sessions_done_fn *done, void *ctx)
{
	struct err e;
	struct deletion *x = xnew(struct deletion);
	int rc = may_delete(s, id, &e);
	if (rc == 0) {
		struct store_run_filter f = {.session = id, .limit = UINT32_MAX};
		rc = store_runs(s->daemon->store, &f, count_run, x, &e);
	}
	if (rc < 0) {
		done(ctx, rc, &e);
		free(x->runs);
		free(x);
		return;
	}
	x->sessions = s;
	(void)str_copy(x->id, sizeof(x->id), id); /* the store knows it: an id */
	x->done = done;
	x->ctx = ctx;
	list_append(&s->deletions, &x->link);
	keeper_end(s->daemon->keeper, id, remove_now, x);
}
