#include "supervisor/db.h"

#include "base/mem.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

struct db {
	sqlite3 *db;          /* owned */
	sqlite3_stmt **stmts; /* owned */
	size_t n;
};

static int fail(const struct db *d, struct err *e, const char *what)
{
	sqlite3 *db = d->db;
	int rc = db ? sqlite3_extended_errcode(db) : SQLITE_NOMEM;
	const char *text = db ? sqlite3_errmsg(db) : "out of memory";
	switch (rc & 0xff) {
	case SQLITE_FULL:
		return err_set(e, -ENOSPC, "%s: %s", what, text);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return err_set(e, -EUCLEAN,
		        "%s: the state database is damaged (%s); it is left as it is: restore it "
		        "from"
		        " a backup, or move supervisor/db* away to begin anew",
		        what, text);
	case SQLITE_CONSTRAINT:
		return err_set(e, -EEXIST, "%s: %s", what, text);
	default:
		return err_set(e, -EIO, "%s: %s", what, text);
	}
}

/* The path is opened as it is given: SQLite would make it absolute, and no directory above the
 * state can be searched by the supervisor's uid. */
static int keep_path(sqlite3_vfs *vfs, const char *path, int n, char *out)
{
	(void)vfs;
	return str_copy(out, (size_t)n, path) ? SQLITE_OK : SQLITE_CANTOPEN;
}

static const char *plain_vfs(void)
{
	static sqlite3_vfs vfs; /* SQLite keeps it for the process's life */
	static const char name[] = "agentbox";
	if (!vfs.zName) {
		vfs = *sqlite3_vfs_find(NULL);
		vfs.pNext = NULL;
		vfs.zName = name;
		vfs.xFullPathname = keep_path;
		sqlite3_vfs_register(&vfs, 0);
	}
	return name;
}

int db_exec(struct db *d, const char *sql, const char *what, struct err *e)
{
	return sqlite3_exec(d->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(d, e, what);
}

int db_scalar(struct db *d, const char *sql, char *out, size_t size, struct err *e)
{
	sqlite3_stmt *s;
	if (sqlite3_prepare_v2(d->db, sql, -1, &s, NULL) != SQLITE_OK)
		return fail(d, e, "read");
	int rc = sqlite3_step(s);
	const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : NULL;
	(void)str_copy(out, size, text ? text : "");
	int bad = rc != SQLITE_ROW && rc != SQLITE_DONE;
	int ret = bad ? fail(d, e, "read") : 0;
	sqlite3_finalize(s);
	return ret;
}

/* ---- life ---- */

struct db *db_open(const char *path, bool writes, struct err *e)
{
	struct db *d = xnew(struct db);
	int flags = SQLITE_OPEN_NOMUTEX |
	            (writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY);
	int rc = 0;
	if (sqlite3_open_v2(path, &d->db, flags, plain_vfs()) != SQLITE_OK)
		rc = fail(d, e, "open the state database");
	if (rc == 0) {
		sqlite3_busy_timeout(d->db, 5000); /* two connections of ours, at a checkpoint */
		rc = db_exec(d, "PRAGMA temp_store=MEMORY; PRAGMA foreign_keys=OFF", "open", e);
	}
	if (rc < 0) {
		db_close(d);
		return NULL;
	}
	return d;
}

void db_close(struct db *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n; i++)
		sqlite3_finalize(d->stmts[i]);
	sqlite3_close(d->db);
	free(d->stmts);
	free(d);
}

/* ---- a copy ---- */

struct db_copy {
	struct db *to;          /* owned */
	sqlite3_backup *backup; /* owned */
};

struct db_copy *db_copy_new(struct db *from, const char *path, struct err *e)
{
	struct db_copy *c = xnew(struct db_copy);
	c->to = db_open(path, true, e);
	if (c->to)
		c->backup = sqlite3_backup_init(c->to->db, "main", from->db, "main");
	if (c->backup)
		return c;
	if (c->to)
		fail(c->to, e, "copy the state database");
	db_copy_free(c);
	return NULL;
}

int db_copy_step(struct db_copy *c, int pages, struct err *e)
{
	switch (sqlite3_backup_step(c->backup, pages)) {
	case SQLITE_OK:
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return 1;
	case SQLITE_DONE:
		return 0;
	case SQLITE_FULL:
		return err_set(e, -ENOSPC, "copy the state database: no room on its disk");
	default:
		return fail(c->to, e, "copy the state database");
	}
}

void db_copy_free(struct db_copy *c)
{
	if (c->backup)
		sqlite3_backup_finish(c->backup);
	db_close(c->to);
	free(c);
}

int db_migrate(struct db *d, const char *const *migrations, size_t n, struct err *e)
{
	char text[32];
	int rc = db_scalar(d, "PRAGMA user_version", text, sizeof(text), e);
	if (rc < 0)
		return rc;
	size_t version = strtoul(text, NULL, 10);
	if (version > n)
		return err_set(e, -EPROTO,
		        "the state database has version %zu, this program knows up to %zu: it was"
		        " written by a newer agentbox; install that one again, or restore a backup "
		        "of before into another state directory",
		        version, n);
	for (; version < n; version++) {
		auto_free char *sql = xasprintf("BEGIN;%s PRAGMA user_version=%zu; COMMIT",
		        migrations[version], version + 1);
		rc = db_exec(d, sql, "create the tables", e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int db_prepare(struct db *d, const char *const *sql, size_t n, struct err *e)
{
	assert(!d->stmts);
	d->stmts = xcalloc(n, sizeof(sqlite3_stmt *));
	d->n = n;
	for (size_t i = 0; i < n; i++)
		if (sqlite3_prepare_v3(d->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &d->stmts[i],
		            NULL) != SQLITE_OK)
			return fail(d, e, sql[i]);
	return 0;
}

/* ---- use ---- */

static int bind_params(sqlite3_stmt *s, const struct db_param *params, size_t n)
{
	int rc = SQLITE_OK;
	for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
		const struct db_param *p = &params[i];
		int at = (int)i + 1;
		if (p->type == 'i')
			rc = sqlite3_bind_int64(s, at, p->i);
		else if (!p->p)
			rc = sqlite3_bind_null(s, at);
		else if (p->type == 'b')
			rc = sqlite3_bind_blob64(s, at, p->p, p->n, SQLITE_STATIC);
		else
			rc = sqlite3_bind_text64(s, at, p->p, p->n, SQLITE_STATIC, SQLITE_UTF8);
	}
	return rc;
}

int db_rows(struct db *d, size_t stmt, const struct db_param *params, size_t n, db_row_fn *row,
        void *ctx, struct err *e)
{
	assert(stmt < d->n);
	sqlite3_stmt *s = d->stmts[stmt];
	int count = 0, rc = bind_params(s, params, n);
	if (rc == SQLITE_OK)
		while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
			if (row)
				row((const struct db_row *)s, ctx);
			count++;
		}
	int ret = rc == SQLITE_DONE ? count : fail(d, e, "state database");
	(void)sqlite3_reset(s);
	(void)sqlite3_clear_bindings(s);
	return ret;
}

int db_run(struct db *d, size_t stmt, const struct db_param *params, size_t n, struct err *e)
{
	int rc = db_rows(d, stmt, params, n, NULL, NULL, e);
	return rc < 0 ? rc : 0;
}

bool db_in_transaction(const struct db *d)
{
	return !sqlite3_get_autocommit(d->db);
}

static sqlite3_stmt *of(const struct db_row *r)
{
	return (sqlite3_stmt *)(uintptr_t)r;
}

const char *db_text(const struct db_row *r, int column)
{
	return (const char *)sqlite3_column_text(of(r), column);
}

const char *db_blob(const struct db_row *r, int column, size_t *ret_n)
{
	const char *p = sqlite3_column_blob(of(r), column);
	*ret_n = (size_t)sqlite3_column_bytes(of(r), column);
	return p ? p : "";
}

int64_t db_int(const struct db_row *r, int column)
{
	return sqlite3_column_int64(of(r), column);
}
