/*
 * store_sql.h - the schema of the state database and every statement that is used
 * on it, by name: W_... on the writer's connection, R_... on the reader's.
 */
#ifndef SUPERVISOR_STORE_SQL_H
#define SUPERVISOR_STORE_SQL_H

#include <stddef.h>

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
	X(DROP_SESSION, "DELETE FROM sessions WHERE id = ?")                                       \
	X(SPENT, "INSERT INTO spent(scope, id, day, requests, bytes, tokens, cost, unpriced)"      \
	         " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT(scope, id, day) DO UPDATE"   \
	         " SET requests = max(requests, ?4), bytes = max(bytes, ?5),"                      \
	         " tokens = max(tokens, ?6), cost = max(cost, ?7), unpriced = max(unpriced, ?8)")  \
	X(DROP_SPENT, "DELETE FROM spent WHERE scope = ?1 AND id = ?2")                            \
	X(FORGET_SPENT, "DELETE FROM spent WHERE day > 0 AND day < ?")

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
	X(KEY, "SELECT run, hash FROM idempotency WHERE user = ? AND key = ?")                     \
	X(SPENT, "SELECT requests, bytes, tokens, cost, unpriced FROM spent"                       \
	         " WHERE scope = ? AND id = ? AND day = ?")

enum write {
#define WRITE_ENUM(sym, sql) W_##sym,
	WRITES(WRITE_ENUM)
#undef WRITE_ENUM
	        W_COUNT
};
enum read {
#define READ_ENUM(sym, sql) R_##sym,
	READS(READ_ENUM)
#undef READ_ENUM
	        R_COUNT
};
extern const char *const store_write_sql[W_COUNT], *const store_read_sql[R_COUNT];

enum { STORE_VERSIONS = 2 };
/* Each entry brings user_version from its index to index + 1. */
extern const char *const store_migrations[STORE_VERSIONS];

#endif
