/*
 * store.h - what must survive: sessions, runs, artifacts, idempotency keys, in
 * SQLite (WAL, synchronous=FULL; db.h).
 *
 * Writes are queued and return at once; one writer thread takes all that is
 * queued, syncs the descriptors that came along, and commits as one
 * transaction (so the group is what arrived during the commit before it).  done()
 * comes on the loop thread after the commit is synced.  A job that fails does
 * not take the others of its group with it, unless the commit fails.
 *
 * Reads are small and happen on the loop thread, on a second, read-only
 * connection: they see what is committed.
 */
#ifndef SUPERVISOR_STORE_H
#define SUPERVISOR_STORE_H

#include "base/err.h"
#include "base/id.h"
#include "policy/ledger.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct stats;
struct store;
struct artifact;

typedef void store_done_fn(void *ctx, int rc, const struct err *e);

/* ---- life ---- */

/* `path` is used as it stands: relative to the working directory when relative, because the
 * supervisor cannot walk the path from the root to its state.  Starts the writer thread.  A damaged
 * database is an error and is left as it is. */
struct store *store_open(const char *path, struct stats *stats, struct err *e);
void store_attach(struct store *st, struct loop *l); /* completions are polled by the loop */
/* Commits what is queued, calls what is done; for exit and tests. */
void store_drain(struct store *st);
/* Drains, marks the shutdown as clean, ends the thread. */
void store_close(struct store *st);

/* ---- records; texts in what is read are borrowed for the call of the callback ---- */

struct store_session {
	const char *id, *user, *goal;
	int64_t created_ms, used_ms;
	uint64_t reserved; /* numbers of its event log that may have been delivered */
	bool gap;          /* a power cut happened since: numbers may be missing from the file */
	bool seeded;       /* seed files were written once */
	uint64_t runs;
};

struct store_run {
	const char *id, *session, *user, *goal, *harness;
	const char *status; /* queued, running or the end's */
	const char *prompt;
	size_t prompt_len;
	const char *params; /* JSON object, or NULL */
	const char *result; /* JSON, NULL until it has ended */
	int priority;
	int64_t created_ms, started_ms, ended_ms; /* 0: not yet */
	uint64_t from_seq;
};

struct store_finish {
	const char *run, *session, *status, *result;
	int64_t ended_ms;
	const char *backend, *resume; /* resume NULL: left as it is; "": forgotten */
	const struct artifact *artifacts;
	size_t nartifacts;
	uint64_t settled; /* 0, or the reservation shrinks to this number: nothing more is owed */
};

/* ---- writing ---- */
void store_add_session(
        struct store *st, const struct store_session *s, store_done_fn *done, void *ctx);
/* The session too, if it is new; its reservation becomes at least s->reserved.  key and hash: the
 * idempotency key and the digest of the request, or NULL. */
void store_add_run(struct store *st, const struct store_session *s, const struct store_run *r,
        const char *key, const char *hash, store_done_fn *done, void *ctx);
void store_start_run(struct store *st, const char *run, int64_t started_ms);
void store_seeded(struct store *st, const char *session);
/* Takes sync_fd (negative: none) and syncs it before the commit. */
void store_finish_run(struct store *st, const struct store_finish *f, int sync_fd,
        store_done_fn *done, void *ctx);
void store_reserve(
        struct store *st, const char *session, uint64_t upto, store_done_fn *done, void *ctx);
/* What an account has spent: what is there is raised to it. */
struct store_spent {
	uint32_t scope; /* enum budget_scope */
	const char *id;
	int64_t day; /* 0: not by the day */
	struct spending spent;
};
void store_spend(struct store *st, const struct store_spent *all, size_t n);
void store_forget_spent(struct store *st, int64_t before_day);
/* fdatasync on the writer's thread; takes fd. */
void store_sync(struct store *st, int fd, store_done_fn *done, void *ctx);
/* The session and everything of its runs. */
void store_delete_session(struct store *st, const char *session, store_done_fn *done, void *ctx);

/* ---- reading: 0, -ENOENT, or -EIO ---- */
typedef void store_session_fn(void *ctx, const struct store_session *s);
typedef void store_run_fn(void *ctx, const struct store_run *r);
typedef void store_artifact_fn(void *ctx, size_t n, const struct artifact *a);

MUST_USE int store_session(
        struct store *st, const char *id, store_session_fn *each, void *ctx, struct err *e);
/* The id of the pair's session. */
MUST_USE int store_session_id(
        struct store *st, const char *user, const char *goal, char ret[ID_MAX], struct err *e);
/* NULL: any.  Newest first, ids below `cursor`. */
MUST_USE int store_sessions(struct store *st, const char *user, const char *goal,
        const char *cursor, unsigned limit, store_session_fn *each, void *ctx, struct err *e);
size_t store_session_count(struct store *st);

struct store_run_filter {
	const char *user, *goal, *session, *harness, *status, *cursor;
	unsigned limit;
};
MUST_USE int store_run(
        struct store *st, const char *id, store_run_fn *each, void *ctx, struct err *e);
MUST_USE int store_runs(struct store *st, const struct store_run_filter *f, store_run_fn *each,
        void *ctx, struct err *e);
/* Those without an end, oldest first. */
MUST_USE int store_unfinished(struct store *st, store_run_fn *each, void *ctx, struct err *e);
MUST_USE int store_artifacts(
        struct store *st, const char *run, store_artifact_fn *each, void *ctx, struct err *e);
/* Owned by the caller; NULL where none. */
char *store_resume(struct store *st, const char *session, const char *backend);
/* Nothing where nothing is known. */
MUST_USE int store_spent(struct store *st, uint32_t scope, const char *id, int64_t day,
        struct spending *ret, struct err *e);
/* -ENOENT, or the run that the key stands for and the digest of its request. */
MUST_USE int store_idempotent(struct store *st, const char *user, const char *key,
        char ret_run[ID_MAX], char ret_hash[65]);

#endif
