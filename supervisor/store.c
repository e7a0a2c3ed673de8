/*
 * Theory of operation.  The loop thread builds a job - a list of statements
 * with copied parameters - and puts it on `queue`.  The writer takes the whole
 * queue, fdatasyncs the descriptors in it, runs each job in a savepoint and
 * commits once.  Finished jobs go to `finished`, the eventfd wakes the loop, and
 * their done() is called there.  Only the writer touches `db` after the start, only
 * the loop thread touches `reader`.
 */
#include "supervisor/store.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/artifacts.h"
#include "supervisor/loop.h"
#include "supervisor/stats.h"

#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- schema: each entry brings user_version from its index to index + 1 ---- */

static const char *const migrations[] = {
        "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
        "CREATE TABLE sessions(id TEXT PRIMARY KEY, user TEXT NOT NULL, goal TEXT NOT NULL,"
        " created_ms INTEGER NOT NULL, used_ms INTEGER NOT NULL,"
        " reserved INTEGER NOT NULL DEFAULT 0, gap INTEGER NOT NULL DEFAULT 0,"
        " seeded INTEGER NOT NULL DEFAULT 0, UNIQUE(user, goal)) WITHOUT ROWID;"
        "CREATE TABLE resumes(session TEXT NOT NULL, backend TEXT NOT NULL, resume TEXT NOT NULL,"
        " PRIMARY KEY(session, backend)) WITHOUT ROWID;"
        "CREATE TABLE runs(id TEXT PRIMARY KEY, session TEXT NOT NULL, harness TEXT NOT NULL,"
        " status TEXT NOT NULL, prompt BLOB NOT NULL, params TEXT, result TEXT,"
        " priority INTEGER NOT NULL, created_ms INTEGER NOT NULL,"
        " started_ms INTEGER NOT NULL DEFAULT 0, ended_ms INTEGER NOT NULL DEFAULT 0,"
        " from_seq INTEGER NOT NULL);"
        "CREATE INDEX runs_session ON runs(session);"
        "CREATE INDEX runs_open ON runs(id) WHERE result IS NULL;"
        "CREATE TABLE artifacts(run TEXT NOT NULL, n INTEGER NOT NULL, path TEXT NOT NULL,"
        " bytes INTEGER NOT NULL, sha256 TEXT NOT NULL, PRIMARY KEY(run, n)) WITHOUT ROWID;"
        "CREATE TABLE idempotency(user TEXT NOT NULL, key TEXT NOT NULL, run TEXT NOT NULL,"
        " hash TEXT NOT NULL, PRIMARY KEY(user, key)) WITHOUT ROWID;",
};

#define SESSION_COLUMNS                                                                            \
	"s.id, s.user, s.goal, s.created_ms, s.used_ms, s.reserved, s.gap, s.seeded,"              \
	" (SELECT count(*) FROM runs WHERE session = s.id)"
#define RUN_COLUMNS                                                                                \
	"r.id, r.session, s.user, s.goal, r.harness, r.status, r.prompt, r.params, r.result,"      \
	" r.priority, r.created_ms, r.started_ms, r.ended_ms, r.from_seq"
#define RUN_FROM " FROM runs r JOIN sessions s ON s.id = r.session "

#define WRITES(X)                                                                                  \
	X(BEGIN, "BEGIN IMMEDIATE")                                                                \
	X(COMMIT, "COMMIT")                                                                        \
	X(ROLLBACK, "ROLLBACK")                                                                    \
	X(SAVEPOINT, "SAVEPOINT job")                                                              \
	X(RELEASE, "RELEASE job")                                                                  \
	X(UNDO, "ROLLBACK TO job")                                                                 \
	X(META, "INSERT OR REPLACE INTO meta(key, value) VALUES(?, ?)")                            \
	X(POWER_CUT, "UPDATE sessions SET gap = 1")                                                \
	X(SESSION,                                                                                 \
	        "INSERT INTO sessions(id, user, goal, created_ms, used_ms, reserved)"              \
	        " VALUES(?1, ?2, ?3, ?4, ?4, ?5) ON CONFLICT(id) DO UPDATE"                        \
	        " SET used_ms = ?4, reserved = max(reserved, ?5), gap = CASE WHEN ?5 > 0 THEN 0"   \
	        " ELSE gap END")                                                                   \
	X(RUN, "INSERT INTO runs(id, session, harness, status, prompt, params, priority,"          \
	       " created_ms, from_seq) VALUES(?, ?, ?, 'queued', ?, ?, ?, ?, ?)")                  \
	X(KEY, "INSERT INTO idempotency(user, key, run, hash) VALUES(?, ?, ?, ?)")                 \
	X(START, "UPDATE runs SET status = 'running', started_ms = ?2 WHERE id = ?1"               \
	         " AND result IS NULL")                                                            \
	X(SEEDED, "UPDATE sessions SET seeded = 1 WHERE id = ?")                                   \
	X(FINISH, "UPDATE runs SET status = ?2, result = ?3, ended_ms = ?4 WHERE id = ?1")         \
	X(SETTLE, "UPDATE sessions SET reserved = ?2, gap = 0, used_ms = ?3 WHERE id = ?1")        \
	X(USED, "UPDATE sessions SET used_ms = ?2 WHERE id = ?1")                                  \
	X(RESERVE, "UPDATE sessions SET reserved = max(reserved, ?2), gap = 0 WHERE id = ?1")      \
	X(RESUME, "INSERT OR REPLACE INTO resumes(session, backend, resume) VALUES(?, ?, ?)")      \
	X(FORGET, "DELETE FROM resumes WHERE session = ? AND backend = ?")                         \
	X(ARTIFACT, "INSERT OR REPLACE INTO artifacts(run, n, path, bytes, sha256)"                \
	            " VALUES(?, ?, ?, ?, ?)")                                                      \
	X(DROP_ARTIFACTS, "DELETE FROM artifacts WHERE run IN"                                     \
	                  " (SELECT id FROM runs WHERE session = ?)")                              \
	X(DROP_KEYS, "DELETE FROM idempotency WHERE run IN"                                        \
	             " (SELECT id FROM runs WHERE session = ?)")                                   \
	X(DROP_RUNS, "DELETE FROM runs WHERE session = ?")                                         \
	X(DROP_RESUMES, "DELETE FROM resumes WHERE session = ?")                                   \
	X(DROP_SESSION, "DELETE FROM sessions WHERE id = ?")

#define READS(X)                                                                                   \
	X(SESSION_BY_ID, "SELECT " SESSION_COLUMNS " FROM sessions s WHERE s.id = ?")              \
	X(SESSION_ID, "SELECT id FROM sessions WHERE user = ? AND goal = ?")                       \
	X(SESSIONS, "SELECT " SESSION_COLUMNS " FROM sessions s"                                   \
	            " WHERE (?1 IS NULL OR s.user = ?1) AND (?2 IS NULL OR s.goal = ?2)"           \
	            " AND (?3 IS NULL OR s.id < ?3) ORDER BY s.id DESC LIMIT ?4")                  \
	X(SESSION_COUNT, "SELECT count(*) FROM sessions")                                          \
	X(RUN_BY_ID, "SELECT " RUN_COLUMNS RUN_FROM "WHERE r.id = ?")                              \
	X(RUNS, "SELECT " RUN_COLUMNS RUN_FROM                                                     \
	        "WHERE (?1 IS NULL OR s.user = ?1) AND (?2 IS NULL OR s.goal = ?2)"                \
	        " AND (?3 IS NULL OR r.session = ?3) AND (?4 IS NULL OR r.harness = ?4)"           \
	        " AND (?5 IS NULL OR r.status = ?5) AND (?6 IS NULL OR r.id < ?6)"                 \
	        " ORDER BY r.id DESC LIMIT ?7")                                                    \
	X(UNFINISHED, "SELECT " RUN_COLUMNS RUN_FROM "WHERE r.result IS NULL ORDER BY r.id")       \
	X(ARTIFACTS, "SELECT n, path, bytes, sha256 FROM artifacts WHERE run = ? ORDER BY n")      \
	X(RESUME, "SELECT resume FROM resumes WHERE session = ? AND backend = ?")                  \
	X(KEY, "SELECT run, hash FROM idempotency WHERE user = ? AND key = ?")

#define STATEMENT_SQL(sym, sql) sql,
enum write {
#define WRITE_ENUM(sym, sql) W_##sym,
	WRITES(WRITE_ENUM)
#undef WRITE_ENUM
	        W_COUNT
};
static const char *const write_sql[] = {WRITES(STATEMENT_SQL)};
enum read {
#define READ_ENUM(sym, sql) R_##sym,
	READS(READ_ENUM)
#undef READ_ENUM
	        R_COUNT
};
static const char *const read_sql[] = {READS(STATEMENT_SQL)};

/* ---- types ---- */

enum { PARAMS_MAX = 8 };

struct param {
	char type; /* 't' text or NULL, 'b' blob, 'i' integer */
	char *p;   /* owned */
	size_t n;
	int64_t i;
};

struct step {
	struct list link; /* in job.steps */
	enum write stmt;
	size_t nparams;
	struct param params[PARAMS_MAX];
};

struct job {
	struct list link; /* in store.queue, then store.finished */
	struct list steps;
	int sync_fd;         /* owned, or -1 */
	store_done_fn *done; /* may be NULL: a failure is logged */
	void *ctx;
	int rc;
	struct err err;
};

struct store {
	sqlite3 *db, *reader; /* owned */
	sqlite3_stmt *writes[W_COUNT], *reads[R_COUNT];
	pthread_t thread;
	bool threaded;
	pthread_mutex_t lock; /* queue, finished, busy, closing, commits, errors */
	pthread_cond_t work, idle;
	struct list queue, finished;
	bool busy, closing;
	uint64_t commits, errors;
	int wake_fd; /* eventfd: something is in `finished` */
	struct op wake;
	struct loop *loop;   /* borrowed, NULL in tests */
	struct stats *stats; /* borrowed */
};

/* ---- SQLite helpers ---- */

static int fail(sqlite3 *db, struct err *e, const char *what)
{
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

static int exec_sql(sqlite3 *db, const char *sql, const char *what, struct err *e)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(db, e, what);
}

/* One text or number, as text; "" when there is no row. */
static int scalar(sqlite3 *db, const char *sql, char *out, size_t size, struct err *e)
{
	sqlite3_stmt *s;
	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
		return fail(db, e, "read");
	int rc = sqlite3_step(s);
	const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : NULL;
	(void)str_copy(out, size, text ? text : "");
	int bad = rc != SQLITE_ROW && rc != SQLITE_DONE;
	int ret = bad ? fail(db, e, "read") : 0;
	sqlite3_finalize(s);
	return ret;
}

static int connect_db(const char *path, int flags, sqlite3 **ret, struct err *e)
{
	if (sqlite3_open_v2(path, ret, flags | SQLITE_OPEN_NOMUTEX, plain_vfs()) != SQLITE_OK)
		return fail(*ret, e, "open the state database");
	sqlite3_busy_timeout(*ret, 5000); /* the two connections of ours, at a checkpoint */
	return exec_sql(*ret, "PRAGMA temp_store=MEMORY; PRAGMA foreign_keys=OFF", "open", e);
}

static int migrate(sqlite3 *db, struct err *e)
{
	char text[32];
	int rc = scalar(db, "PRAGMA user_version", text, sizeof(text), e);
	if (rc < 0)
		return rc;
	size_t version = strtoul(text, NULL, 10);
	if (version > ARRAY_LEN(migrations))
		return err_set(e, -EPROTO,
		        "the state database has version %zu, this program knows up to %zu: it was"
		        " written by a newer agentbox",
		        version, ARRAY_LEN(migrations));
	for (; version < ARRAY_LEN(migrations); version++) {
		auto_free char *sql = xasprintf("BEGIN;%s PRAGMA user_version=%zu; COMMIT",
		        migrations[version], version + 1);
		rc = exec_sql(db, sql, "create the tables", e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int prepare(sqlite3 *db, const char *const *sql, sqlite3_stmt **to, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (sqlite3_prepare_v3(db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &to[i], NULL) !=
		        SQLITE_OK)
			return fail(db, e, sql[i]);
	return 0;
}

/* ---- jobs ---- */

static struct job *job_new(store_done_fn *done, void *ctx)
{
	struct job *j = xnew(struct job);
	list_init(&j->steps);
	j->sync_fd = -1;
	j->done = done;
	j->ctx = ctx;
	return j;
}

/* types: t text (const char *, NULL allowed), b blob (const char *, size_t), i (int64_t). */
static void job_add(struct job *j, enum write stmt, const char *types, ...)
{
	struct step *s = xnew(struct step);
	s->stmt = stmt;
	va_list ap;
	va_start(ap, types);
	for (const char *t = types; *t; t++) {
		assert(s->nparams < PARAMS_MAX);
		struct param *p = &s->params[s->nparams++];
		p->type = *t;
		if (*t == 'i') {
			p->i = va_arg(ap, int64_t);
			continue;
		}
		const char *from = va_arg(ap, const char *);
		p->n = *t == 'b' ? va_arg(ap, size_t) : from ? strlen(from) : 0;
		p->p = from ? xcalloc(1, p->n + 1) : NULL;
		if (from)
			memcpy(p->p, from, p->n);
	}
	va_end(ap);
	list_append(&j->steps, &s->link);
}

static void job_free(struct job *j)
{
	list_for_each (s, &j->steps, struct step, link) {
		for (size_t i = 0; i < s->nparams; i++)
			free(s->params[i].p);
		free(s);
	}
	fd_close(j->sync_fd);
	free(j);
}

static void submit(struct store *st, struct job *j)
{
	pthread_mutex_lock(&st->lock);
	list_append(&st->queue, &j->link);
	pthread_cond_signal(&st->work);
	pthread_mutex_unlock(&st->lock);
}

/* ---- the writer thread ---- */

static int bind_params(sqlite3_stmt *s, const struct step *step)
{
	int rc = SQLITE_OK;
	for (size_t i = 0; i < step->nparams && rc == SQLITE_OK; i++) {
		const struct param *p = &step->params[i];
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

static int run_write(struct store *st, enum write w, const struct step *step, struct err *e)
{
	sqlite3_stmt *s = st->writes[w];
	int rc = step ? bind_params(s, step) : SQLITE_OK;
	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	int ret = rc == SQLITE_DONE || rc == SQLITE_ROW || rc == SQLITE_OK
	                  ? 0
	                  : fail(st->db, e, "state database");
	(void)sqlite3_reset(s);
	(void)sqlite3_clear_bindings(s);
	return ret;
}

static void run_job(struct store *st, struct job *j)
{
	if (j->sync_fd >= 0 && fdatasync(j->sync_fd) < 0) {
		j->rc = err_errno(&j->err, "sync of the event log");
		return;
	}
	if (list_empty(&j->steps))
		return;
	j->rc = run_write(st, W_SAVEPOINT, NULL, &j->err);
	list_for_each (s, &j->steps, struct step, link)
		if (j->rc == 0)
			j->rc = run_write(st, s->stmt, s, &j->err);
	if (j->rc < 0)
		(void)run_write(st, W_UNDO, NULL, NULL); /* the first error counts */
	struct err e;
	if (run_write(st, W_RELEASE, NULL, &e) < 0 && j->rc == 0) {
		j->rc = e.code;
		j->err = e;
	}
}

static bool wants_transaction(const struct list *jobs)
{
	list_for_each (j, jobs, struct job, link)
		if (!list_empty(&j->steps))
			return true;
	return false;
}

/* A failed commit fails the jobs that had something in it; a sync stands by itself. */
static void fail_group(struct list *jobs, int rc, const struct err *e)
{
	list_for_each (j, jobs, struct job, link)
		if (j->rc == 0 && !list_empty(&j->steps)) {
			j->rc = rc;
			j->err = *e;
		}
}

static void run_group(struct store *st, struct list *jobs)
{
	struct err e;
	bool transaction = wants_transaction(jobs);
	int rc = transaction ? run_write(st, W_BEGIN, NULL, &e) : 0;
	if (rc < 0)
		fail_group(jobs, rc, &e);
	list_for_each (j, jobs, struct job, link)
		if (j->rc == 0)
			run_job(st, j);
	if (rc == 0 && transaction)
		rc = run_write(st, W_COMMIT, NULL, &e);
	if (rc == 0)
		return;
	if (!sqlite3_get_autocommit(st->db))
		(void)run_write(st, W_ROLLBACK, NULL, NULL); /* the commit's error counts */
	fail_group(jobs, rc, &e);
}

static void *writer(void *arg)
{
	struct store *st = arg;
	pthread_mutex_lock(&st->lock);
	for (;;) {
		while (list_empty(&st->queue) && !st->closing)
			pthread_cond_wait(&st->work, &st->lock);
		if (list_empty(&st->queue))
			break;
		struct list group;
		list_init(&group);
		list_for_each (j, &st->queue, struct job, link) {
			list_remove(&j->link);
			list_append(&group, &j->link);
		}
		st->busy = true;
		pthread_mutex_unlock(&st->lock);
		run_group(st, &group);
		pthread_mutex_lock(&st->lock);
		st->commits++;
		list_for_each (d, &group, struct job, link) {
			st->errors += d->rc < 0;
			list_remove(&d->link);
			list_append(&st->finished, &d->link);
		}
		st->busy = false;
		uint64_t one = 1;
		(void)!write(st->wake_fd, &one, sizeof(one)); /* cannot fail but by overflow */
		pthread_cond_broadcast(&st->idle);
	}
	pthread_mutex_unlock(&st->lock);
	return NULL;
}

/* ---- completions, on the loop thread ---- */

static void finish_jobs(struct store *st)
{
	struct list mine;
	list_init(&mine);
	pthread_mutex_lock(&st->lock);
	list_for_each (j, &st->finished, struct job, link) {
		list_remove(&j->link);
		list_append(&mine, &j->link);
	}
	st->stats->store_commits = st->commits;
	st->stats->store_errors = st->errors;
	pthread_mutex_unlock(&st->lock);
	while (!list_empty(&mine)) {
		struct job *j = list_entry(mine.next, struct job, link);
		list_remove(&j->link);
		if (j->done)
			j->done(j->ctx, j->rc, j->rc < 0 ? &j->err : NULL);
		else if (j->rc < 0)
			log_err("%s", j->err.text);
		job_free(j);
	}
}

static void woken(struct op *op, int res, uint32_t flags)
{
	(void)flags;
	struct store *st = container_of(op, struct store, wake);
	if (res < 0)
		return;
	uint64_t n;
	(void)!read(st->wake_fd, &n, sizeof(n)); /* EAGAIN: another turn was first */
	loop_poll(st->loop, &st->wake, st->wake_fd, POLLIN, false, woken);
	finish_jobs(st);
}

void store_attach(struct store *st, struct loop *l)
{
	st->loop = l;
	loop_poll(l, &st->wake, st->wake_fd, POLLIN, false, woken);
}

void store_drain(struct store *st)
{
	for (;;) {
		pthread_mutex_lock(&st->lock);
		while (st->busy || !list_empty(&st->queue))
			pthread_cond_wait(&st->idle, &st->lock);
		bool more = !list_empty(&st->finished);
		pthread_mutex_unlock(&st->lock);
		if (!more)
			return;
		finish_jobs(st); /* may queue more */
	}
}

/* ---- life ---- */

/* A new boot after an unclean end means a power cut: what the page cache held is gone. */
static int mark_start(struct store *st, struct err *e)
{
	char clean[8], boot[64];
	auto_free char *now = NULL;
	size_t n;
	int rc =
	        scalar(st->db, "SELECT value FROM meta WHERE key='clean'", clean, sizeof(clean), e);
	if (rc == 0)
		rc = scalar(
		        st->db, "SELECT value FROM meta WHERE key='boot'", boot, sizeof(boot), e);
	if (rc < 0)
		return rc;
	if (file_slurp("/proc/sys/kernel/random/boot_id", 64, &now, &n) < 0)
		now = xstrdup("unknown");
	now[strcspn(now, "\n")] = '\0';
	bool unclean = boot[0] && strcmp(clean, "1") != 0;
	if (unclean) {
		char verdict[256];
		rc = scalar(st->db, "PRAGMA quick_check(1)", verdict, sizeof(verdict), e);
		if (rc == 0 && strcmp(verdict, "ok") != 0)
			return err_set(e, -EUCLEAN,
			        "the state database is damaged (%.80s); it is left as it is: "
			        "restore"
			        " it from a backup, or move supervisor/db* away to begin anew",
			        verdict);
	}
	if (rc == 0 && unclean && strcmp(boot, now) != 0)
		rc = exec_sql(st->db, write_sql[W_POWER_CUT], "mark sessions", e);
	if (rc < 0)
		return rc;
	auto_free char *sql = sqlite3_mprintf(
	        "INSERT OR REPLACE INTO meta(key, value) VALUES('boot', %Q), ('clean', '0')", now);
	rc = sql ? exec_sql(st->db, sql, "mark the start", e) : -ENOMEM;
	sqlite3_free(take(sql));
	return rc;
}

static int open_all(struct store *st, const char *path, struct err *e)
{
	int rc = connect_db(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &st->db, e);
	if (rc == 0)
		rc = exec_sql(st->db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL", "WAL", e);
	if (rc == 0)
		rc = migrate(st->db, e);
	if (rc == 0)
		rc = mark_start(st, e);
	if (rc == 0)
		rc = prepare(st->db, write_sql, st->writes, W_COUNT, e);
	if (rc == 0)
		rc = connect_db(path, SQLITE_OPEN_READONLY, &st->reader, e);
	if (rc == 0)
		rc = prepare(st->reader, read_sql, st->reads, R_COUNT, e);
	return rc;
}

static void release(struct store *st)
{
	for (size_t i = 0; i < W_COUNT; i++)
		sqlite3_finalize(st->writes[i]);
	for (size_t i = 0; i < R_COUNT; i++)
		sqlite3_finalize(st->reads[i]);
	sqlite3_close(st->reader);
	sqlite3_close(st->db);
	fd_close(st->wake_fd);
	pthread_mutex_destroy(&st->lock);
	pthread_cond_destroy(&st->work);
	pthread_cond_destroy(&st->idle);
	free(st);
}

struct store *store_open(const char *path, struct stats *stats, struct err *e)
{
	struct store *st = xnew(struct store);
	st->stats = stats;
	list_init(&st->queue);
	list_init(&st->finished);
	pthread_mutex_init(&st->lock, NULL);
	pthread_cond_init(&st->work, NULL);
	pthread_cond_init(&st->idle, NULL);
	st->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int rc = st->wake_fd < 0 ? err_errno(e, "eventfd") : open_all(st, path, e);
	if (rc == 0 && (rc = pthread_create(&st->thread, NULL, writer, st)) != 0)
		rc = err_set(e, -rc, "start the store's thread");
	if (rc < 0) {
		release(st);
		return NULL;
	}
	st->threaded = true;
	return st;
}

void store_close(struct store *st)
{
	if (!st)
		return;
	store_drain(st);
	struct job *j = job_new(NULL, NULL);
	job_add(j, W_META, "tt", "clean", "1");
	submit(st, j);
	store_drain(st);
	pthread_mutex_lock(&st->lock);
	st->closing = true;
	pthread_cond_signal(&st->work);
	pthread_mutex_unlock(&st->lock);
	if (st->threaded)
		pthread_join(st->thread, NULL);
	release(st);
}

/* ---- writing ---- */

static void add_session(struct job *j, const struct store_session *s)
{
	job_add(j, W_SESSION, "tttii", s->id, s->user, s->goal, s->created_ms,
	        (int64_t)s->reserved);
}

void store_add_session(
        struct store *st, const struct store_session *s, store_done_fn *done, void *ctx)
{
	struct job *j = job_new(done, ctx);
	add_session(j, s);
	submit(st, j);
}

void store_add_run(struct store *st, const struct store_session *s, const struct store_run *r,
        const char *key, const char *hash, store_done_fn *done, void *ctx)
{
	struct job *j = job_new(done, ctx);
	add_session(j, s);
	job_add(j, W_RUN, "tttbtiii", r->id, r->session, r->harness, r->prompt, r->prompt_len,
	        r->params, (int64_t)r->priority, r->created_ms, (int64_t)r->from_seq);
	if (key)
		job_add(j, W_KEY, "tttt", s->user, key, r->id, hash);
	submit(st, j);
}

void store_start_run(struct store *st, const char *run, int64_t started_ms)
{
	struct job *j = job_new(NULL, NULL);
	job_add(j, W_START, "ti", run, started_ms);
	submit(st, j);
}

void store_seeded(struct store *st, const char *session)
{
	struct job *j = job_new(NULL, NULL);
	job_add(j, W_SEEDED, "t", session);
	submit(st, j);
}

void store_finish_run(
        struct store *st, const struct store_finish *f, int sync_fd, store_done_fn *done, void *ctx)
{
	struct job *j = job_new(done, ctx);
	j->sync_fd = sync_fd;
	job_add(j, W_FINISH, "ttti", f->run, f->status, f->result, f->ended_ms);
	for (size_t i = 0; i < f->nartifacts; i++)
		job_add(j, W_ARTIFACT, "titit", f->run, (int64_t)i, f->artifacts[i].path,
		        (int64_t)f->artifacts[i].bytes, f->artifacts[i].sha256);
	if (f->resume && f->resume[0])
		job_add(j, W_RESUME, "ttt", f->session, f->backend, f->resume);
	else if (f->resume)
		job_add(j, W_FORGET, "tt", f->session, f->backend);
	if (f->settled)
		job_add(j, W_SETTLE, "tii", f->session, (int64_t)f->settled, f->ended_ms);
	else
		job_add(j, W_USED, "ti", f->session, f->ended_ms);
	submit(st, j);
}

void store_reserve(
        struct store *st, const char *session, uint64_t upto, store_done_fn *done, void *ctx)
{
	struct job *j = job_new(done, ctx);
	job_add(j, W_RESERVE, "ti", session, (int64_t)upto);
	submit(st, j);
}

void store_sync(struct store *st, int fd, store_done_fn *done, void *ctx)
{
	struct job *j = job_new(done, ctx);
	j->sync_fd = fd;
	submit(st, j);
}

void store_delete_session(struct store *st, const char *session, store_done_fn *done, void *ctx)
{
	static const enum write order[] = {
	        W_DROP_ARTIFACTS, W_DROP_KEYS, W_DROP_RUNS, W_DROP_RESUMES, W_DROP_SESSION};
	struct job *j = job_new(done, ctx);
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		job_add(j, order[i], "t", session);
	submit(st, j);
}

/* ---- reading ---- */

typedef void row_fn(sqlite3_stmt *s, void *each, void *ctx);

static void bind_text(sqlite3_stmt *s, int at, const char *text)
{
	if (text)
		sqlite3_bind_text(s, at, text, -1, SQLITE_STATIC);
	else
		sqlite3_bind_null(s, at);
}

/* Steps through the rows.  Number of rows, or -errno.  Callbacks must not read from the store: one
 * statement may be in use by its own callback. */
static int rows(struct store *st, enum read r, row_fn *row, void *each, void *ctx, struct err *e)
{
	sqlite3_stmt *s = st->reads[r];
	int n = 0, rc;
	while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
		row(s, each, ctx);
		n++;
	}
	int ret = rc == SQLITE_DONE ? n : fail(st->reader, e, "state database");
	(void)sqlite3_reset(s);
	(void)sqlite3_clear_bindings(s);
	return ret;
}

static const char *text_at(sqlite3_stmt *s, int i)
{
	return (const char *)sqlite3_column_text(s, i);
}

struct session_each {
	store_session_fn *fn;
};
struct run_each {
	store_run_fn *fn;
};
struct artifact_each {
	store_artifact_fn *fn;
};

static void session_row(sqlite3_stmt *s, void *each, void *ctx)
{
	struct store_session x = {
	        .id = text_at(s, 0),
	        .user = text_at(s, 1),
	        .goal = text_at(s, 2),
	        .created_ms = sqlite3_column_int64(s, 3),
	        .used_ms = sqlite3_column_int64(s, 4),
	        .reserved = (uint64_t)sqlite3_column_int64(s, 5),
	        .gap = sqlite3_column_int(s, 6) != 0,
	        .seeded = sqlite3_column_int(s, 7) != 0,
	        .runs = (uint64_t)sqlite3_column_int64(s, 8),
	};
	((struct session_each *)each)->fn(ctx, &x);
}

static void run_row(sqlite3_stmt *s, void *each, void *ctx)
{
	struct store_run x = {
	        .id = text_at(s, 0),
	        .session = text_at(s, 1),
	        .user = text_at(s, 2),
	        .goal = text_at(s, 3),
	        .harness = text_at(s, 4),
	        .status = text_at(s, 5),
	        .prompt = sqlite3_column_blob(s, 6),
	        .prompt_len = (size_t)sqlite3_column_bytes(s, 6),
	        .params = text_at(s, 7),
	        .result = text_at(s, 8),
	        .priority = sqlite3_column_int(s, 9),
	        .created_ms = sqlite3_column_int64(s, 10),
	        .started_ms = sqlite3_column_int64(s, 11),
	        .ended_ms = sqlite3_column_int64(s, 12),
	        .from_seq = (uint64_t)sqlite3_column_int64(s, 13),
	};
	if (!x.prompt)
		x.prompt = "";
	((struct run_each *)each)->fn(ctx, &x);
}

int store_session(
        struct store *st, const char *id, store_session_fn *each, void *ctx, struct err *e)
{
	struct session_each x = {each};
	bind_text(st->reads[R_SESSION_BY_ID], 1, id);
	int n = rows(st, R_SESSION_BY_ID, session_row, &x, ctx, e);
	return n == 0 ? err_set(e, -ENOENT, "no session '%.40s'", id) : n < 0 ? n : 0;
}

static void id_row(sqlite3_stmt *s, void *each, void *ctx)
{
	(void)each;
	(void)str_copy(ctx, ID_MAX, text_at(s, 0));
}

int store_session_id(
        struct store *st, const char *user, const char *goal, char ret[ID_MAX], struct err *e)
{
	bind_text(st->reads[R_SESSION_ID], 1, user);
	bind_text(st->reads[R_SESSION_ID], 2, goal);
	int n = rows(st, R_SESSION_ID, id_row, NULL, ret, e);
	return n == 0 ? err_set(e, -ENOENT, "no session of this user and goal") : n < 0 ? n : 0;
}

int store_sessions(struct store *st, const char *user, const char *goal, const char *cursor,
        unsigned limit, store_session_fn *each, void *ctx, struct err *e)
{
	struct session_each x = {each};
	sqlite3_stmt *s = st->reads[R_SESSIONS];
	bind_text(s, 1, user);
	bind_text(s, 2, goal);
	bind_text(s, 3, cursor);
	sqlite3_bind_int64(s, 4, limit);
	int n = rows(st, R_SESSIONS, session_row, &x, ctx, e);
	return n < 0 ? n : 0;
}

static void count_row(sqlite3_stmt *s, void *each, void *ctx)
{
	(void)each;
	*(size_t *)ctx = (size_t)sqlite3_column_int64(s, 0);
}

size_t store_session_count(struct store *st)
{
	size_t n = 0;
	return rows(st, R_SESSION_COUNT, count_row, NULL, &n, NULL) < 0 ? 0 : n;
}

int store_run(struct store *st, const char *id, store_run_fn *each, void *ctx, struct err *e)
{
	struct run_each x = {each};
	bind_text(st->reads[R_RUN_BY_ID], 1, id);
	int n = rows(st, R_RUN_BY_ID, run_row, &x, ctx, e);
	return n == 0 ? err_set(e, -ENOENT, "no run '%.40s'", id) : n < 0 ? n : 0;
}

int store_runs(struct store *st, const struct store_run_filter *f, store_run_fn *each, void *ctx,
        struct err *e)
{
	struct run_each x = {each};
	sqlite3_stmt *s = st->reads[R_RUNS];
	const char *const texts[] = {
	        f->user, f->goal, f->session, f->harness, f->status, f->cursor};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		bind_text(s, (int)i + 1, texts[i]);
	sqlite3_bind_int64(s, 7, f->limit);
	int n = rows(st, R_RUNS, run_row, &x, ctx, e);
	return n < 0 ? n : 0;
}

int store_unfinished(struct store *st, store_run_fn *each, void *ctx, struct err *e)
{
	struct run_each x = {each};
	int n = rows(st, R_UNFINISHED, run_row, &x, ctx, e);
	return n < 0 ? n : 0;
}

static void artifact_row(sqlite3_stmt *s, void *each, void *ctx)
{
	auto_free char *path = xstrdup(text_at(s, 1));
	struct artifact a = {.path = path, .bytes = (uint64_t)sqlite3_column_int64(s, 2)};
	(void)str_copy(a.sha256, sizeof(a.sha256), text_at(s, 3));
	((struct artifact_each *)each)->fn(ctx, (size_t)sqlite3_column_int64(s, 0), &a);
}

int store_artifacts(
        struct store *st, const char *run, store_artifact_fn *each, void *ctx, struct err *e)
{
	struct artifact_each x = {each};
	bind_text(st->reads[R_ARTIFACTS], 1, run);
	int n = rows(st, R_ARTIFACTS, artifact_row, &x, ctx, e);
	return n < 0 ? n : 0;
}

static void resume_row(sqlite3_stmt *s, void *each, void *ctx)
{
	(void)each;
	*(char **)ctx = xstrdup(text_at(s, 0));
}

char *store_resume(struct store *st, const char *session, const char *backend)
{
	char *ret = NULL;
	bind_text(st->reads[R_RESUME], 1, session);
	bind_text(st->reads[R_RESUME], 2, backend);
	(void)rows(st, R_RESUME, resume_row, NULL, &ret, NULL); /* unreadable: a new conversation */
	return ret;
}

struct key_found {
	char *run, *hash; /* borrowed */
};

static void key_row(sqlite3_stmt *s, void *each, void *ctx)
{
	(void)each;
	struct key_found *f = ctx;
	(void)str_copy(f->run, ID_MAX, text_at(s, 0));
	(void)str_copy(f->hash, 65, text_at(s, 1));
}

int store_idempotent(struct store *st, const char *user, const char *key, char ret_run[ID_MAX],
        char ret_hash[65])
{
	struct key_found f = {ret_run, ret_hash};
	bind_text(st->reads[R_KEY], 1, user);
	bind_text(st->reads[R_KEY], 2, key);
	int n = rows(st, R_KEY, key_row, NULL, &f, NULL);
	return n == 0 ? -ENOENT : n < 0 ? n : 0;
}
