/*
 * store_sql.h - the schema of the state database and every statement that is used
 * on it, by name: W_... on the writer's connection, R_... on the reader's.
 */
#ifndef SUPERVISOR_STORE_SQL_H
#define SUPERVISOR_STORE_SQL_H

#include <stddef.h>

#define SESSION_COLUMNS                                                                            \
	"s.id, s.user, s.goal, s.created_ms, s.used_ms, s.reserved, s.gap, s.seeded,"              \
	" (SELECT count(*) FROM runs WHERE session = s.id), s.pinned, s.evicted_ms"
#define RUN_COLUMNS                                                                                \
	"r.id, r.session, s.user, s.goal, r.harness, r.status, r.prompt, r.params, r.result,"      \
	" r.priority, r.created_ms, r.started_ms, r.ended_ms, r.from_seq, r.pipeline, r.parent,"   \
	" r.step, r.trace"
#define RUN_FROM " FROM runs r JOIN sessions s ON s.id = r.session "

/* Of a struct store_view: range and list of owners. */
#define SEEN(from, to, owners)                                                                     \
	" AND (" from " IS NULL OR (s.user >= " from " AND s.user < " to "))"                      \
	" AND (" owners " IS NULL OR s.user IN (SELECT value FROM json_each(" owners ")))"

#define OBJECT_COLUMNS                                                                             \
	"run, n, session, path, bytes, sha256, place, state, error, due_ms, since_ms, failures,"   \
	" gone_here, told"
/* OBJECT_DELETING (store.h); ?2: now. */
#define OBJECT_GOES "state = 4, due_ms = ?2, since_ms = ?2, failures = 0, error = NULL, told = 1"

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
	        " ELSE gap END, evicted_ms = 0")                                                   \
	X(RUN, "INSERT INTO runs(id, session, harness, status, prompt, params, priority,"          \
	       " created_ms, from_seq) VALUES(?, ?, ?, 'queued', ?, ?, ?, ?, ?)")                  \
	X(PIPELINE, "UPDATE runs SET pipeline = ?2 WHERE id = ?1")                                 \
	X(STEP, "UPDATE runs SET parent = ?2, step = ?3 WHERE id = ?1")                            \
	X(TRACE, "UPDATE runs SET trace = ?2 WHERE id = ?1")                                       \
	X(KEY, "INSERT INTO idempotency(user, key, run, hash) VALUES(?, ?, ?, ?)")                 \
	X(START, "UPDATE runs SET status = 'running', started_ms = ?2 WHERE id = ?1"               \
	         " AND result IS NULL")                                                            \
	X(SEEDED, "UPDATE sessions SET seeded = 1 WHERE id = ?")                                   \
	X(FINISH, "UPDATE runs SET status = ?2, result = ?3, ended_ms = ?4 WHERE id = ?1")         \
	X(SETTLE, "UPDATE sessions SET reserved = ?2, gap = 0, used_ms = ?3 WHERE id = ?1")        \
	X(USED, "UPDATE sessions SET used_ms = ?2 WHERE id = ?1")                                  \
	X(EVICT, "UPDATE sessions SET evicted_ms = ?2 WHERE id = ?1")                              \
	X(PIN, "UPDATE sessions SET pinned = ?2 WHERE id = ?1")                                    \
	X(RESERVE, "UPDATE sessions SET reserved = max(reserved, ?2), gap = 0 WHERE id = ?1")      \
	X(RESUME, "INSERT OR REPLACE INTO resumes(session, backend, resume, run)"                  \
	          " VALUES(?, ?, ?, ?)")                                                           \
	X(FORGET, "DELETE FROM resumes WHERE session = ? AND backend = ?")                         \
	X(ARTIFACT, "INSERT OR REPLACE INTO artifacts(run, n, path, bytes, sha256)"                \
	            " VALUES(?, ?, ?, ?, ?)")                                                      \
	X(DROP_ARTIFACTS, "DELETE FROM artifacts WHERE run IN"                                     \
	                  " (SELECT id FROM runs WHERE session = ?)")                              \
	X(DROP_KEYS, "DELETE FROM idempotency WHERE run IN"                                        \
	             " (SELECT id FROM runs WHERE session = ?)")                                   \
	X(DROP_RUNS, "DELETE FROM runs WHERE session = ?")                                         \
	X(GONE, "UPDATE runs SET gone = gone | ?2 WHERE id = ?1")                                  \
	X(DROP_RUN_ARTIFACTS, "DELETE FROM artifacts WHERE run = ?")                               \
	X(DROP_RUN_KEY, "DELETE FROM idempotency WHERE run = ?")                                   \
	X(DROP_RUN, "DELETE FROM runs WHERE id = ? AND result IS NOT NULL")                        \
	X(DROP_RESUMES, "DELETE FROM resumes WHERE session = ?")                                   \
	X(DROP_SESSION, "DELETE FROM sessions WHERE id = ?")                                       \
	X(SPENT, "INSERT INTO spent(scope, id, day, requests, bytes, tokens, cost, unpriced)"      \
	         " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT(scope, id, day) DO UPDATE"   \
	         " SET requests = max(requests, ?4), bytes = max(bytes, ?5),"                      \
	         " tokens = max(tokens, ?6), cost = max(cost, ?7), unpriced = max(unpriced, ?8)")  \
	X(DROP_SPENT, "DELETE FROM spent WHERE scope = ?1 AND id = ?2")                            \
	X(FORGET_SPENT, "DELETE FROM spent WHERE day > 0 AND day < ?")                             \
	X(HOOK, "INSERT INTO deliveries(webhook, run, session, seq) VALUES(?, ?, ?, ?)")           \
	X(HOOK_AT, "UPDATE deliveries SET seq = ?3 WHERE webhook = ?1 AND run = ?2")               \
	X(HOOK_DONE, "DELETE FROM deliveries WHERE webhook = ? AND run = ?")                       \
	X(API_KEY, "INSERT INTO keys(id, hash, spec) VALUES(?, ?, ?)")                             \
	X(DROP_API_KEY, "DELETE FROM keys WHERE id = ?")                                           \
	X(DROP_HOOKS, "DELETE FROM deliveries WHERE session = ?")                                  \
	X(REPO, "INSERT OR REPLACE INTO repos(session, source, base, ref) VALUES(?, ?, ?, ?)")     \
	X(CHECKOUT, "INSERT INTO checkouts(run, session, asked) VALUES(?, ?, ?)")                  \
	X(CHECKOUT_DONE, "DELETE FROM checkouts WHERE run = ?")                                    \
	X(DROP_REPO, "DELETE FROM repos WHERE session = ?")                                        \
	X(DROP_CHECKOUTS, "DELETE FROM checkouts WHERE session = ?")                               \
	X(OBJECT, "INSERT OR REPLACE INTO objects(run, n, session, path, bytes, sha256, place,"    \
	          " due_ms, since_ms) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)")                 \
	X(OBJECT_SET, "UPDATE objects SET state = ?4, due_ms = ?5, failures = ?6, error = ?7,"     \
	              " place = coalesce(?8, place), gone_here = ?9"                               \
	              " WHERE run = ?1 AND n = ?2 AND state = ?3")                                 \
	X(OBJECT_DROP, "DELETE FROM objects WHERE run = ? AND n = ? AND state = ?")                \
	X(OBJECTS_TOLD, "UPDATE objects SET told = 1 WHERE run = ?")                               \
	X(DROP_OBJECTS, "UPDATE objects SET " OBJECT_GOES " WHERE session = ?1 AND state <> 4")    \
	X(DROP_RUN_OBJECTS, "UPDATE objects SET " OBJECT_GOES " WHERE run = ?1 AND state <> 4")

#define READS(X)                                                                                   \
	X(SESSION_BY_ID, "SELECT " SESSION_COLUMNS " FROM sessions s WHERE s.id = ?")              \
	X(SESSION_ID, "SELECT id FROM sessions WHERE user = ? AND goal = ?")                       \
	X(SESSIONS, "SELECT " SESSION_COLUMNS " FROM sessions s"                                   \
	            " WHERE (?1 IS NULL OR s.user = ?1) AND (?2 IS NULL OR s.goal = ?2)"           \
	            " AND (?3 IS NULL OR s.id < ?3)" SEEN(                                         \
	                    "?5", "?6", "?7") " ORDER BY s.id DESC LIMIT ?4")                      \
	X(META, "SELECT value FROM meta WHERE key = ?")                                            \
	X(SESSION_OWNER, "SELECT user, NULL FROM sessions WHERE id = ?")                           \
	X(RUN_OWNER, "SELECT s.user, r.harness" RUN_FROM "WHERE r.id = ?")                         \
	X(SESSION_COUNT, "SELECT count(*) FROM sessions")                                          \
	X(READY_COUNT, "SELECT count(*) FROM sessions WHERE evicted_ms = 0")                       \
	X(IDLE, "SELECT s.id, s.used_ms FROM sessions s WHERE s.evicted_ms = 0 AND s.pinned = 0"   \
	        " AND s.used_ms <= ?1 AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.session = s.id" \
	        " AND r.result IS NULL) ORDER BY s.used_ms, s.id LIMIT ?2")                        \
	X(RUN_BY_ID, "SELECT " RUN_COLUMNS RUN_FROM "WHERE r.id = ?")                              \
	X(RUNS, "SELECT " RUN_COLUMNS RUN_FROM                                                     \
	        "WHERE (?1 IS NULL OR s.user = ?1) AND (?2 IS NULL OR s.goal = ?2)"                \
	        " AND (?3 IS NULL OR r.session = ?3) AND (?4 IS NULL OR r.harness = ?4)"           \
	        " AND (?5 IS NULL OR r.status = ?5) AND r.id < coalesce(?6, '~')"                  \
	        " AND r.id < coalesce(?13, '~') AND r.id >= coalesce(?12, '')" SEEN(               \
	                "?8", "?9", "?10") " AND (?11 IS NULL OR r.harness IN (SELECT value FROM " \
	                                   "json_each(?11)))"                                      \
	                                   " ORDER BY r.id DESC LIMIT ?7")                         \
	X(RUN_COUNTS, "SELECT r.status, count(*)" RUN_FROM                                         \
	              "WHERE 1" SEEN("?1", "?2", "?3") " AND (?4 IS NULL OR r.harness IN (SELECT " \
	                                               "value FROM json_each(?4)))"                \
	                                               " GROUP BY r.status")                       \
	X(UNFINISHED, "SELECT " RUN_COLUMNS RUN_FROM "WHERE r.result IS NULL ORDER BY r.id")       \
	X(STEPS, "SELECT " RUN_COLUMNS RUN_FROM "WHERE r.parent = ? ORDER BY r.step")              \
	X(ENDED, "SELECT id, session, ended_ms, gone, EXISTS(SELECT 1 FROM deliveries d"           \
	         " WHERE d.run = runs.id) OR EXISTS(SELECT 1 FROM sessions s"                      \
	         " WHERE s.id = runs.session AND s.pinned) FROM runs WHERE result IS NOT NULL"     \
	         " AND (ended_ms, id) > (?1, ?2) AND ended_ms < ?3"                                \
	         " ORDER BY ended_ms, id LIMIT ?4")                                                \
	X(NTH_END, "SELECT ended_ms FROM runs WHERE result IS NOT NULL"                            \
	           " ORDER BY ended_ms DESC, id DESC LIMIT 1 OFFSET ?")                            \
	X(KEPT_FROM, "SELECT min(from_seq) FROM runs r WHERE session = ?1 AND (result IS NULL"     \
	             " OR ended_ms >= ?2 OR EXISTS(SELECT 1 FROM deliveries d"                     \
	             " WHERE d.run = r.id))")                                                      \
	X(ARTIFACTS, "SELECT n, path, bytes, sha256 FROM artifacts WHERE run = ? ORDER BY n")      \
	X(RESUME, "SELECT resume, run FROM resumes WHERE session = ? AND backend = ?")             \
	X(RESUMES, "SELECT backend, resume, run FROM resumes WHERE session = ?"                    \
	           " ORDER BY backend")                                                            \
	X(KEY, "SELECT run, hash FROM idempotency WHERE user = ? AND key = ?")                     \
	X(SPENT, "SELECT requests, bytes, tokens, cost, unpriced FROM spent"                       \
	         " WHERE scope = ? AND id = ? AND day = ?")                                        \
	X(SPENT_RANGE,                                                                             \
	        "SELECT coalesce(sum(requests), 0), coalesce(sum(bytes), 0),"                      \
	        " coalesce(sum(tokens), 0), coalesce(sum(cost), 0), coalesce(sum(unpriced), 0)"    \
	        " FROM spent WHERE scope = ? AND id >= ? AND id < ? AND day = ?")                  \
	X(API_KEYS, "SELECT id, hash, spec FROM keys ORDER BY id")                                 \
	X(HOOKS, "SELECT d.webhook, d.run, d.session, d.seq, s.user, s.goal, r.harness,"           \
	         " r.result IS NOT NULL FROM deliveries d JOIN runs r ON r.id = d.run"             \
	         " JOIN sessions s ON s.id = d.session ORDER BY d.run")                            \
	X(REPO, "SELECT source, base, ref FROM repos WHERE session = ?")                           \
	X(CHECKOUT, "SELECT asked FROM checkouts WHERE run = ?")                                   \
	X(OBJECTS_DUE, "SELECT " OBJECT_COLUMNS " FROM objects WHERE due_ms > 0 AND state = ?1"    \
	               " AND due_ms <= ?2 ORDER BY due_ms, run, n LIMIT ?3")                       \
	X(OBJECTS_NEXT, "SELECT due_ms FROM objects WHERE due_ms > 0 AND state = ?1"               \
	                " AND due_ms > ?2 ORDER BY due_ms LIMIT 1")                                \
	X(OBJECTS_PENDING, "SELECT count(*) FROM objects WHERE due_ms > 0 AND state = 1")          \
	X(OBJECTS, "SELECT " OBJECT_COLUMNS " FROM objects WHERE run = ? ORDER BY n")              \
	X(OBJECTS_UNTOLD, "SELECT DISTINCT run, session FROM objects o WHERE told = 0"             \
	                  " AND NOT EXISTS (SELECT 1 FROM objects p WHERE p.run = o.run"           \
	                  " AND p.state = 1)")

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

enum { STORE_VERSIONS = 11 };
/* Each entry brings user_version from its index to index + 1. */
extern const char *const store_migrations[STORE_VERSIONS];

#endif
