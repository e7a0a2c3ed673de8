#include "supervisor/store.h"

#include "base/mem.h"
#include "supervisor/artifacts.h"
#include "supervisor/store_private.h"

#include <string.h>

/* Rows of one statement on the loop thread's connection, each made into a record for its caller. */
struct session_each {
	store_session_fn *fn;
	void *ctx;
};
struct run_each {
	store_run_fn *fn;
	void *ctx;
};
struct artifact_each {
	store_artifact_fn *fn;
	void *ctx;
};

static int found(int rows, struct err *e, const char *what, const char *name)
{
	return rows < 0 ? rows : rows == 0 ? err_set(e, -ENOENT, "no %s '%.40s'", what, name) : 0;
}

/* ---- sessions ---- */

static void session_row(const struct db_row *r, void *ctx)
{
	const struct session_each *each = ctx;
	struct store_session x = {
	        .id = db_text(r, 0),
	        .user = db_text(r, 1),
	        .goal = db_text(r, 2),
	        .created_ms = db_int(r, 3),
	        .used_ms = db_int(r, 4),
	        .reserved = (uint64_t)db_int(r, 5),
	        .gap = db_int(r, 6) != 0,
	        .seeded = db_int(r, 7) != 0,
	        .runs = (uint64_t)db_int(r, 8),
	        .pinned = db_int(r, 9) != 0,
	        .evicted_ms = db_int(r, 10),
	};
	each->fn(each->ctx, &x);
}

int store_session(
        struct store *st, const char *id, store_session_fn *each, void *ctx, struct err *e)
{
	struct session_each x = {each, ctx};
	struct db_param p = db_t(id);
	return found(
	        db_rows(st->reader, R_SESSION_BY_ID, &p, 1, session_row, &x, e), e, "session", id);
}

static void id_row(const struct db_row *r, void *ctx)
{
	(void)str_copy(ctx, ID_MAX, db_text(r, 0));
}

int store_session_id(
        struct store *st, const char *user, const char *goal, char ret[ID_MAX], struct err *e)
{
	const struct db_param p[] = {db_t(user), db_t(goal)};
	int n = db_rows(st->reader, R_SESSION_ID, p, ARRAY_LEN(p), id_row, ret, e);
	return n == 0 ? err_set(e, -ENOENT, "no session of this user and goal") : n < 0 ? n : 0;
}

static const struct store_view everything;

int store_sessions(struct store *st, const char *user, const char *goal,
        const struct store_view *view, const char *cursor, unsigned limit, store_session_fn *each,
        void *ctx, struct err *e)
{
	struct session_each x = {each, ctx};
	const struct store_view *v = view ? view : &everything;
	const struct db_param p[] = {db_t(user), db_t(goal), db_t(cursor), db_i(limit),
	        db_t(v->from), db_t(v->to), db_t(v->owners)};
	int n = db_rows(st->reader, R_SESSIONS, p, ARRAY_LEN(p), session_row, &x, e);
	return n < 0 ? n : 0;
}

struct owner_each {
	store_owner_fn *fn;
	void *ctx;
};

static void owner_row(const struct db_row *r, void *ctx)
{
	const struct owner_each *each = ctx;
	each->fn(each->ctx, db_text(r, 0), db_text(r, 1));
}

int store_session_owner(
        struct store *st, const char *id, store_owner_fn *each, void *ctx, struct err *e)
{
	struct owner_each x = {each, ctx};
	struct db_param p = db_t(id);
	return found(
	        db_rows(st->reader, R_SESSION_OWNER, &p, 1, owner_row, &x, e), e, "session", id);
}

int store_run_owner(
        struct store *st, const char *id, store_owner_fn *each, void *ctx, struct err *e)
{
	struct owner_each x = {each, ctx};
	struct db_param p = db_t(id);
	return found(db_rows(st->reader, R_RUN_OWNER, &p, 1, owner_row, &x, e), e, "run", id);
}

static void count_row(const struct db_row *r, void *ctx)
{
	*(size_t *)ctx = (size_t)db_int(r, 0);
}

size_t store_session_count(struct store *st)
{
	size_t n = 0;
	return db_rows(st->reader, R_SESSION_COUNT, NULL, 0, count_row, &n, NULL) < 0 ? 0 : n;
}

size_t store_ready_count(struct store *st)
{
	size_t n = 0;
	return db_rows(st->reader, R_READY_COUNT, NULL, 0, count_row, &n, NULL) < 0 ? 0 : n;
}

struct idle_each {
	store_idle_fn *fn;
	void *ctx;
};

static void idle_row(const struct db_row *r, void *ctx)
{
	const struct idle_each *each = ctx;
	each->fn(each->ctx, db_text(r, 0), db_int(r, 1));
}

int store_idle(struct store *st, int64_t used_ms, unsigned limit, store_idle_fn *each, void *ctx,
        struct err *e)
{
	struct idle_each x = {each, ctx};
	const struct db_param p[] = {db_i(used_ms), db_i(limit)};
	int n = db_rows(st->reader, R_IDLE, p, ARRAY_LEN(p), idle_row, &x, e);
	return n < 0 ? n : 0;
}

struct meta_found {
	char *to; /* borrowed */
	size_t size;
	bool fits;
};

static void meta_row(const struct db_row *r, void *ctx)
{
	struct meta_found *f = ctx;
	f->fits = str_copy(f->to, f->size, db_text(r, 0));
}

int store_meta(struct store *st, const char *key, char *ret, size_t size, struct err *e)
{
	struct meta_found f = {ret, size, true};
	struct db_param p = db_t(key);
	ret[0] = '\0';
	int n = db_rows(st->reader, R_META, &p, 1, meta_row, &f, e);
	return n < 0 ? n : f.fits ? 0 : err_set(e, -ENOBUFS, "state: '%s' is too long", key);
}

/* ---- runs ---- */

static void run_row(const struct db_row *r, void *ctx)
{
	const struct run_each *each = ctx;
	struct store_run x = {
	        .id = db_text(r, 0),
	        .session = db_text(r, 1),
	        .user = db_text(r, 2),
	        .goal = db_text(r, 3),
	        .harness = db_text(r, 4),
	        .status = db_text(r, 5),
	        .params = db_text(r, 7),
	        .result = db_text(r, 8),
	        .priority = (int)db_int(r, 9),
	        .created_ms = db_int(r, 10),
	        .started_ms = db_int(r, 11),
	        .ended_ms = db_int(r, 12),
	        .from_seq = (uint64_t)db_int(r, 13),
	        .pipeline = db_text(r, 14),
	        .parent = db_text(r, 15),
	        .step = (unsigned)db_int(r, 16),
	        .trace = db_text(r, 17),
	};
	x.prompt = db_blob(r, 6, &x.prompt_len);
	each->fn(each->ctx, &x);
}

int store_run(struct store *st, const char *id, store_run_fn *each, void *ctx, struct err *e)
{
	struct run_each x = {each, ctx};
	struct db_param p = db_t(id);
	return found(db_rows(st->reader, R_RUN_BY_ID, &p, 1, run_row, &x, e), e, "run", id);
}

int store_runs(struct store *st, const struct store_run_filter *f, store_run_fn *each, void *ctx,
        struct err *e)
{
	struct run_each x = {each, ctx};
	const struct store_view *v = f->view ? f->view : &everything;
	const struct db_param p[] = {db_t(f->user), db_t(f->goal), db_t(f->session),
	        db_t(f->harness), db_t(f->status), db_t(f->cursor), db_i(f->limit), db_t(v->from),
	        db_t(v->to), db_t(v->owners), db_t(v->harnesses), db_t(f->since), db_t(f->until)};
	int n = db_rows(st->reader, R_RUNS, p, ARRAY_LEN(p), run_row, &x, e);
	return n < 0 ? n : 0;
}

struct count_each {
	store_count_fn *fn;
	void *ctx;
};

static void counted_row(const struct db_row *r, void *ctx)
{
	const struct count_each *each = ctx;
	each->fn(each->ctx, db_text(r, 0), (uint64_t)db_int(r, 1));
}

int store_run_counts(struct store *st, const struct store_view *view, store_count_fn *each,
        void *ctx, struct err *e)
{
	struct count_each x = {each, ctx};
	const struct db_param p[] = {
	        db_t(view->from), db_t(view->to), db_t(view->owners), db_t(view->harnesses)};
	int n = db_rows(st->reader, R_RUN_COUNTS, p, ARRAY_LEN(p), counted_row, &x, e);
	return n < 0 ? n : 0;
}

int store_unfinished(struct store *st, store_run_fn *each, void *ctx, struct err *e)
{
	struct run_each x = {each, ctx};
	int n = db_rows(st->reader, R_UNFINISHED, NULL, 0, run_row, &x, e);
	return n < 0 ? n : 0;
}

int store_steps(
        struct store *st, const char *pipeline, store_run_fn *each, void *ctx, struct err *e)
{
	struct run_each x = {each, ctx};
	struct db_param p = db_t(pipeline);
	int n = db_rows(st->reader, R_STEPS, &p, 1, run_row, &x, e);
	return n < 0 ? n : 0;
}

/* ---- runs as retention sees them ---- */

struct ended_each {
	store_ended_fn *fn;
	void *ctx;
};

static void ended_row(const struct db_row *r, void *ctx)
{
	const struct ended_each *each = ctx;
	const struct store_ended x = {
	        .id = db_text(r, 0),
	        .session = db_text(r, 1),
	        .ended_ms = db_int(r, 2),
	        .gone = (unsigned)db_int(r, 3),
	        .owed = db_int(r, 4) != 0,
	};
	each->fn(each->ctx, &x);
}

int store_ended(struct store *st, int64_t after_ms, const char *after, int64_t before_ms,
        unsigned limit, store_ended_fn *each, void *ctx, struct err *e)
{
	struct ended_each x = {each, ctx};
	const struct db_param p[] = {db_i(after_ms), db_t(after), db_i(before_ms), db_i(limit)};
	int n = db_rows(st->reader, R_ENDED, p, ARRAY_LEN(p), ended_row, &x, e);
	return n < 0 ? n : 0;
}

static void number_row(const struct db_row *r, void *ctx)
{
	*(int64_t *)ctx = db_int(r, 0);
}

int store_nth_end(struct store *st, uint64_t n, int64_t *ret_ms, struct err *e)
{
	const struct db_param p = db_i((int64_t)n);
	*ret_ms = 0;
	int rows = db_rows(st->reader, R_NTH_END, &p, 1, number_row, ret_ms, e);
	return rows < 0 ? rows : 0;
}

int store_kept_from(
        struct store *st, const char *session, int64_t before_ms, uint64_t *ret_seq, struct err *e)
{
	int64_t seq = 0; /* NULL reads as 0, and no run begins there */
	const struct db_param p[] = {db_t(session), db_i(before_ms)};
	int rows = db_rows(st->reader, R_KEPT_FROM, p, ARRAY_LEN(p), number_row, &seq, e);
	if (rows < 0)
		return rows;
	*ret_seq = seq > 0 ? (uint64_t)seq : UINT64_MAX;
	return 0;
}

/* ---- artifacts ---- */

static void artifact_row(const struct db_row *r, void *ctx)
{
	const struct artifact_each *each = ctx;
	auto_free char *path = xstrdup(db_text(r, 1));
	struct artifact a = {.path = path, .bytes = (uint64_t)db_int(r, 2)};
	(void)str_copy(a.sha256, sizeof(a.sha256), db_text(r, 3));
	each->fn(each->ctx, (size_t)db_int(r, 0), &a);
}

int store_artifacts(
        struct store *st, const char *run, store_artifact_fn *each, void *ctx, struct err *e)
{
	struct artifact_each x = {each, ctx};
	struct db_param p = db_t(run);
	int n = db_rows(st->reader, R_ARTIFACTS, &p, 1, artifact_row, &x, e);
	return n < 0 ? n : 0;
}

/* ---- what a session resumes, what a key stands for ---- */

struct resume_found {
	char *resume; /* owned */
	char *run;    /* borrowed */
};

static void resume_row(const struct db_row *r, void *ctx)
{
	struct resume_found *f = ctx;
	f->resume = xstrdup(db_text(r, 0));
	(void)str_copy(f->run, ID_MAX, db_text(r, 1));
}

char *store_resume(struct store *st, const char *session, const char *backend, char ret_run[ID_MAX])
{
	struct resume_found f = {.run = ret_run};
	const struct db_param p[] = {db_t(session), db_t(backend)};
	/* Unreadable: a new conversation. */
	int n = db_rows(st->reader, R_RESUME, p, ARRAY_LEN(p), resume_row, &f, NULL);
	return n < 0 ? NULL : f.resume;
}

struct talk_each {
	store_talk_fn *each;
	void *ctx;
};

static void talk_row(const struct db_row *r, void *ctx)
{
	const struct talk_each *x = ctx;
	const struct store_talk talk = {db_text(r, 0), db_text(r, 1), db_text(r, 2)};
	x->each(x->ctx, &talk);
}

int store_talks(
        struct store *st, const char *session, store_talk_fn *each, void *ctx, struct err *e)
{
	struct talk_each x = {each, ctx};
	struct db_param p = db_t(session);
	int n = db_rows(st->reader, R_RESUMES, &p, 1, talk_row, &x, e);
	return n < 0 ? n : 0;
}

struct key_found {
	char *run, *hash; /* borrowed */
};

static void key_row(const struct db_row *r, void *ctx)
{
	struct key_found *f = ctx;
	(void)str_copy(f->run, ID_MAX, db_text(r, 0));
	(void)str_copy(f->hash, 65, db_text(r, 1));
}

int store_idempotent(struct store *st, const char *user, const char *key, char ret_run[ID_MAX],
        char ret_hash[65])
{
	struct key_found f = {ret_run, ret_hash};
	const struct db_param p[] = {db_t(user), db_t(key)};
	int n = db_rows(st->reader, R_KEY, p, ARRAY_LEN(p), key_row, &f, NULL);
	return n == 0 ? -ENOENT : n < 0 ? n : 0;
}

/* ---- checkouts ---- */

static void repo_row(const struct db_row *r, void *ctx)
{
	struct store_repo *x = ctx;
	x->source = xstrdup(db_text(r, 0));
	x->base = xstrdup(db_text(r, 1));
	x->ref = xstrdup(db_text(r, 2));
}

int store_repo(struct store *st, const char *session, struct store_repo *ret, struct err *e)
{
	struct store_repo x = {0};
	struct db_param p = db_t(session);
	int n = db_rows(st->reader, R_REPO, &p, 1, repo_row, &x, e);
	if (n <= 0)
		return n < 0 ? n : err_set(e, -ENOENT, "session %s has no checkout", session);
	*ret = x;
	return 0;
}

void store_repo_done(struct store_repo *x)
{
	free(take(x->source));
	free(take(x->base));
	free(take(x->ref));
}

static void checkout_row(const struct db_row *r, void *ctx)
{
	*(char **)ctx = xstrdup(db_text(r, 0));
}

char *store_checkout(struct store *st, const char *run, struct err *e)
{
	char *asked = NULL;
	struct db_param p = db_t(run);
	return db_rows(st->reader, R_CHECKOUT, &p, 1, checkout_row, &asked, e) < 0 ? NULL : asked;
}

/* ---- what was spent ---- */

static void spent_row(const struct db_row *r, void *ctx)
{
	struct spending *s = ctx;
	s->sum = (struct budget){.requests = (uint64_t)db_int(r, 0),
	        .bytes = (uint64_t)db_int(r, 1),
	        .tokens = (uint64_t)db_int(r, 2),
	        .cost_micro = (uint64_t)db_int(r, 3)};
	s->unpriced = (uint64_t)db_int(r, 4);
}

int store_spent(struct store *st, uint32_t scope, const char *id, int64_t day, struct spending *ret,
        struct err *e)
{
	struct spending s = {0};
	const struct db_param p[] = {db_i(scope), db_t(id), db_i(day)};
	int n = db_rows(st->reader, R_SPENT, p, ARRAY_LEN(p), spent_row, &s, e);
	if (n < 0)
		return n;
	*ret = s;
	return 0;
}

int store_spent_range(struct store *st, uint32_t scope, const char *from, const char *to,
        int64_t day, struct budget *ret, struct err *e)
{
	struct spending s = {0};
	const struct db_param p[] = {db_i(scope), db_t(from), db_t(to), db_i(day)};
	int n = db_rows(st->reader, R_SPENT_RANGE, p, ARRAY_LEN(p), spent_row, &s, e);
	*ret = s.sum;
	return n < 0 ? n : 0;
}

/* ---- API keys ---- */

struct key_each {
	store_key_fn *fn;
	void *ctx;
};

static void api_key_row(const struct db_row *r, void *ctx)
{
	const struct key_each *each = ctx;
	const struct store_key x = {db_text(r, 0), db_text(r, 1), db_text(r, 2)};
	each->fn(each->ctx, &x);
}

int store_keys(struct store *st, store_key_fn *each, void *ctx, struct err *e)
{
	struct key_each x = {each, ctx};
	int n = db_rows(st->reader, R_API_KEYS, NULL, 0, api_key_row, &x, e);
	return n < 0 ? n : 0;
}

/* ---- webhooks ---- */

struct delivery_each {
	store_delivery_fn *fn;
	void *ctx;
};

static void delivery_row(const struct db_row *r, void *ctx)
{
	const struct delivery_each *each = ctx;
	const struct store_delivery x = {
	        .webhook = db_text(r, 0),
	        .run = db_text(r, 1),
	        .session = db_text(r, 2),
	        .seq = (uint64_t)db_int(r, 3),
	        .user = db_text(r, 4),
	        .goal = db_text(r, 5),
	        .harness = db_text(r, 6),
	        .over = db_int(r, 7) != 0,
	};
	each->fn(each->ctx, &x);
}

int store_deliveries(struct store *st, store_delivery_fn *each, void *ctx, struct err *e)
{
	struct delivery_each x = {each, ctx};
	int n = db_rows(st->reader, R_HOOKS, NULL, 0, delivery_row, &x, e);
	return n < 0 ? n : 0;
}
