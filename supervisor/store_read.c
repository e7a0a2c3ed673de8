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

int store_sessions(struct store *st, const char *user, const char *goal, const char *cursor,
        unsigned limit, store_session_fn *each, void *ctx, struct err *e)
{
	struct session_each x = {each, ctx};
	const struct db_param p[] = {db_t(user), db_t(goal), db_t(cursor), db_i(limit)};
	int n = db_rows(st->reader, R_SESSIONS, p, ARRAY_LEN(p), session_row, &x, e);
	return n < 0 ? n : 0;
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
	const struct db_param p[] = {db_t(f->user), db_t(f->goal), db_t(f->session),
	        db_t(f->harness), db_t(f->status), db_t(f->cursor), db_i(f->limit)};
	int n = db_rows(st->reader, R_RUNS, p, ARRAY_LEN(p), run_row, &x, e);
	return n < 0 ? n : 0;
}

int store_unfinished(struct store *st, store_run_fn *each, void *ctx, struct err *e)
{
	struct run_each x = {each, ctx};
	int n = db_rows(st->reader, R_UNFINISHED, NULL, 0, run_row, &x, e);
	return n < 0 ? n : 0;
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

static void resume_row(const struct db_row *r, void *ctx)
{
	*(char **)ctx = xstrdup(db_text(r, 0));
}

char *store_resume(struct store *st, const char *session, const char *backend)
{
	char *ret = NULL;
	const struct db_param p[] = {db_t(session), db_t(backend)};
	/* Unreadable: a new conversation. */
	int n = db_rows(st->reader, R_RESUME, p, ARRAY_LEN(p), resume_row, &ret, NULL);
	return n < 0 ? NULL : ret;
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
