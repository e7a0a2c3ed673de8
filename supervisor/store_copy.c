/*
 * A copy of the database while it is in use: the writer makes it, some pages at a time between
 * two groups of its own.  What it commits meanwhile goes into the copy as well (SQLite's backup of
 * a connection by itself), so the copy is of the moment at which it is whole.
 */
#include "supervisor/store.h"

#include "base/mem.h"
#include "supervisor/store_private.h"

enum { PAGES = 64 /* a quarter of a MiB: commits wait no longer than for that */ };

void store_copy(struct store *st, const char *path, store_done_fn *done, void *ctx)
{
	struct job *j = store_job(done, ctx);
	j->copy_to = xstrdup(path);
	store_submit(st, j);
}

void store_copy_begin(struct store *st, struct job *j)
{
	if (st->copying) {
		j->rc = err_set(&j->err, -EBUSY, "another copy of the state is being made");
		return;
	}
	st->copy = db_copy_new(st->db, j->copy_to, &j->err);
	if (!st->copy) {
		j->rc = j->err.code;
		return;
	}
	list_remove(&j->link);
	st->copying = j;
}

struct job *store_copy_go_on(struct store *st)
{
	struct job *j = st->copying;
	j->rc = db_copy_step(st->copy, PAGES, &j->err);
	if (j->rc > 0)
		return NULL;
	db_copy_free(take(st->copy));
	st->copying = NULL;
	return j;
}
