#include "supervisor/store_sql.h"

#define STATEMENT_SQL(sym, sql) (sql),
const char *const store_write_sql[W_COUNT] = {WRITES(STATEMENT_SQL)};
const char *const store_read_sql[R_COUNT] = {READS(STATEMENT_SQL)};

const char *const store_migrations[STORE_VERSIONS] = {
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
        "CREATE TABLE spent(scope INTEGER NOT NULL, id TEXT NOT NULL, day INTEGER NOT NULL,"
        " requests INTEGER NOT NULL, bytes INTEGER NOT NULL, tokens INTEGER NOT NULL,"
        " cost INTEGER NOT NULL, unpriced INTEGER NOT NULL,"
        " PRIMARY KEY(scope, id, day)) WITHOUT ROWID;",
        /* The run up to which a conversation goes; of older ones: all that were. */
        "ALTER TABLE resumes ADD COLUMN run TEXT NOT NULL DEFAULT '';"
        "UPDATE resumes SET run = coalesce((SELECT max(id) FROM runs"
        " WHERE session = resumes.session), '');",
        "CREATE TABLE deliveries(webhook TEXT NOT NULL, run TEXT NOT NULL, session TEXT NOT NULL,"
        " seq INTEGER NOT NULL, PRIMARY KEY(webhook, run)) WITHOUT ROWID;"
        "CREATE INDEX deliveries_session ON deliveries(session);",
        "CREATE TABLE keys(id TEXT PRIMARY KEY, hash TEXT NOT NULL, spec TEXT NOT NULL)"
        " WITHOUT ROWID;",
        /* Of a pipeline the harness that it was accepted with; of a step whose it is.  No step is
         * there twice. */
        "ALTER TABLE runs ADD COLUMN pipeline TEXT;"
        "ALTER TABLE runs ADD COLUMN parent TEXT;"
        "ALTER TABLE runs ADD COLUMN step INTEGER NOT NULL DEFAULT 0;"
        "CREATE UNIQUE INDEX runs_steps ON runs(parent, step) WHERE parent IS NOT NULL;",
        /* What a session's workspace was checked out from; what runs that have not ended ask for.
         */
        "CREATE TABLE repos(session TEXT PRIMARY KEY, source TEXT NOT NULL, base TEXT NOT NULL,"
        " ref TEXT NOT NULL) WITHOUT ROWID;"
        "CREATE TABLE checkouts(run TEXT PRIMARY KEY, session TEXT NOT NULL, asked TEXT NOT NULL)"
        " WITHOUT ROWID;"
        "CREATE INDEX checkouts_session ON checkouts(session);",
        /* `gone`: of the run, by retention (store.h). */
        "ALTER TABLE runs ADD COLUMN gone INTEGER NOT NULL DEFAULT 0;"
        "CREATE INDEX runs_ended ON runs(ended_ms, id) WHERE result IS NOT NULL;",
        /* Those that are ready have no time at which they were evicted. */
        "ALTER TABLE sessions ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE sessions ADD COLUMN evicted_ms INTEGER NOT NULL DEFAULT 0;"
        "CREATE INDEX sessions_idle ON sessions(used_ms) WHERE evicted_ms = 0 AND pinned = 0;",
        /* The trace that it came with. */
        "ALTER TABLE runs ADD COLUMN trace TEXT;",
        /* What is in root's bucket, or is to be; it outlives run and session until it is deleted
         * there.  Rows that are at an end are not due. */
        "CREATE TABLE objects(run TEXT NOT NULL, n INTEGER NOT NULL, session TEXT NOT NULL,"
        " path TEXT NOT NULL, bytes INTEGER NOT NULL, sha256 TEXT NOT NULL, place TEXT NOT NULL,"
        " state INTEGER NOT NULL DEFAULT 1, error TEXT, due_ms INTEGER NOT NULL,"
        " since_ms INTEGER NOT NULL, failures INTEGER NOT NULL DEFAULT 0,"
        " gone_here INTEGER NOT NULL DEFAULT 0, told INTEGER NOT NULL DEFAULT 0,"
        " PRIMARY KEY(run, n)) WITHOUT ROWID;"
        "CREATE INDEX objects_due ON objects(state, due_ms) WHERE due_ms > 0;"
        "CREATE INDEX objects_session ON objects(session);"
        "CREATE INDEX objects_untold ON objects(run, session) WHERE told = 0;",
};
