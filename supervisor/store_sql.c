#include "supervisor/store_sql.h"

#define STATEMENT_SQL(sym, sql) sql,
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
};
