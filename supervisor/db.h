/*
 * db.h - a thin layer over SQLite, and its only user: connections, statements by
 * number, rows.
 *
 * A connection belongs to one thread at a time.  Errors: -ENOSPC, -EUCLEAN (the
 * file is damaged and left as it is), -EEXIST (a constraint), -EIO.
 */
#ifndef SUPERVISOR_DB_H
#define SUPERVISOR_DB_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db;     /* one connection */
struct db_row; /* valid for the call it is given to */

/* ---- life ---- */

/* `path` as it stands.  Returns owned, or NULL with *e set. */
struct db *db_open(const char *path, bool writes, struct err *e);
void db_close(struct db *d);
MUST_USE int db_exec(struct db *d, const char *sql, const char *what, struct err *e);
/* One text or number, as text; "" when there is no row. */
MUST_USE int db_scalar(struct db *d, const char *sql, char *out, size_t size, struct err *e);
/* Each entry brings user_version from its index to index + 1. */
MUST_USE int db_migrate(struct db *d, const char *const *migrations, size_t n, struct err *e);
/* Once: the statements, by their index from then on.  `sql` is static. */
MUST_USE int db_prepare(struct db *d, const char *const *sql, size_t n, struct err *e);

/* ---- a copy of a database that is in use by this connection ---- */

struct db_copy;
/* To a new file at `path`.  Returns owned, or NULL with *e. */
struct db_copy *db_copy_new(struct db *from, const char *path, struct err *e);
/* 1: there is more; 0: it is whole; or -errno. */
MUST_USE int db_copy_step(struct db_copy *c, int pages, struct err *e);
void db_copy_free(struct db_copy *c);

/* ---- use ---- */

struct db_param {
	char type; /* 't' text or NULL, 'b' blob, 'i' integer */
	const char *p;
	size_t n;
	int64_t i;
};
static inline struct db_param db_t(const char *text)
{
	size_t n = 0;
	while (text && text[n])
		n++;
	return (struct db_param){.type = 't', .p = text, .n = n};
}
static inline struct db_param db_i(int64_t i)
{
	return (struct db_param){.type = 'i', .i = i};
}

MUST_USE int db_run(
        struct db *d, size_t stmt, const struct db_param *params, size_t n, struct err *e);
bool db_in_transaction(const struct db *d);
/* Number of rows, or -errno.  Within row() the same statement must not be used again. */
typedef void db_row_fn(const struct db_row *r, void *ctx);
MUST_USE int db_rows(struct db *d, size_t stmt, const struct db_param *params, size_t n,
        db_row_fn *row, void *ctx, struct err *e);

const char *db_text(const struct db_row *r, int column); /* NULL where NULL */
const char *db_blob(const struct db_row *r, int column, size_t *ret_n);
int64_t db_int(const struct db_row *r, int column);

#endif
