/* Artifacts in root's bucket: what is there, and what is still to be put there or deleted. */
#include "supervisor/store.h"

#include "base/mem.h"
#include "supervisor/store_private.h"

/* ---- writing ---- */

void store_object_set(struct store *st, const struct store_object *x, enum object_state was,
        store_done_fn *done, void *ctx)
{
	struct job *j = store_job(done, ctx);
	store_job_add(j, W_OBJECT_SET, "tiiiiitti", x->run, (int64_t)x->n, (int64_t)was,
	        (int64_t)x->state, x->due_ms, (int64_t)x->failures, x->error, x->place,
	        (int64_t)x->gone_here);
	store_submit(st, j);
}

void store_object_drop(struct store *st, const char *run, size_t n, store_done_fn *done, void *ctx)
{
	struct job *j = store_job(done, ctx);
	store_job_add(j, W_OBJECT_DROP, "tii", run, (int64_t)n, (int64_t)OBJECT_DELETING);
	store_submit(st, j);
}

void store_objects_told(
        struct store *st, const char *run, int sync_fd, store_done_fn *done, void *ctx)
{
	struct job *j = store_job(done, ctx);
	j->sync_fd = sync_fd;
	store_job_add(j, W_OBJECTS_TOLD, "t", run);
	store_submit(st, j);
}

/* ---- reading ---- */

struct object_each {
	store_object_fn *fn;
	void *ctx;
};

static void object_row(const struct db_row *r, void *ctx)
{
	const struct object_each *each = ctx;
	const char *error = db_text(r, 8);
	const struct store_object x = {
	        .run = db_text(r, 0),
	        .n = (size_t)db_int(r, 1),
	        .session = db_text(r, 2),
	        .path = db_text(r, 3),
	        .bytes = (uint64_t)db_int(r, 4),
	        .sha256 = db_text(r, 5),
	        .place = db_text(r, 6),
	        .state = (enum object_state)db_int(r, 7),
	        .error = error ? error : "",
	        .due_ms = db_int(r, 9),
	        .since_ms = db_int(r, 10),
	        .failures = (unsigned)db_int(r, 11),
	        .gone_here = db_int(r, 12) != 0,
	        .told = db_int(r, 13) != 0,
	};
	each->fn(each->ctx, &x);
}

int store_objects_due(struct store *st, enum object_state state, int64_t now_ms, unsigned limit,
        store_object_fn *each, void *ctx, struct err *e)
{
	struct object_each x = {each, ctx};
	const struct db_param p[] = {db_i(state), db_i(now_ms), db_i(limit)};
	int n = db_rows(st->reader, R_OBJECTS_DUE, p, ARRAY_LEN(p), object_row, &x, e);
	return n < 0 ? n : 0;
}

static void number_row(const struct db_row *r, void *ctx)
{
	*(int64_t *)ctx = db_int(r, 0);
}

int64_t store_objects_next(struct store *st, enum object_state state, int64_t after_ms)
{
	int64_t at = 0;
	const struct db_param p[] = {db_i(state), db_i(after_ms)};
	return db_rows(st->reader, R_OBJECTS_NEXT, p, ARRAY_LEN(p), number_row, &at, NULL) < 0 ? 0
	                                                                                       : at;
}

uint64_t store_objects_pending(struct store *st)
{
	int64_t n = 0;
	return db_rows(st->reader, R_OBJECTS_PENDING, NULL, 0, number_row, &n, NULL) < 0
	               ? 0
	               : (uint64_t)n;
}

int store_objects(
        struct store *st, const char *run, store_object_fn *each, void *ctx, struct err *e)
{
	struct object_each x = {each, ctx};
	const struct db_param p = db_t(run);
	int n = db_rows(st->reader, R_OBJECTS, &p, 1, object_row, &x, e);
	return n < 0 ? n : 0;
}

static void untold_row(const struct db_row *r, void *ctx)
{
	const struct object_each *each = ctx;
	const struct store_object x = {.run = db_text(r, 0), .session = db_text(r, 1)};
	each->fn(each->ctx, &x);
}

int store_objects_untold(struct store *st, store_object_fn *each, void *ctx, struct err *e)
{
	struct object_each x = {each, ctx};
	int n = db_rows(st->reader, R_OBJECTS_UNTOLD, NULL, 0, untold_row, &x, e);
	return n < 0 ? n : 0;
}
