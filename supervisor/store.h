/*
 * store.h - what must survive: sessions, runs, artifacts, idempotency keys, in
 * SQLite (WAL, synchronous=FULL; db.h).
 *
 * Writes are queued and return at once; one writer thread takes all that is
 * queued, syncs the descriptors that came along (together: syncs.h), and commits as one
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
#include "policy/webhooks.h"

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

/* user: an owner (owner.h), here and below. */
struct store_session {
	const char *id, *user, *goal;
	int64_t created_ms, used_ms;
	uint64_t reserved; /* numbers of its event log that may have been delivered */
	bool gap;          /* a power cut happened since: numbers may be missing from the file */
	bool seeded;       /* seed files were written once */
	uint64_t runs;
	bool pinned;        /* never evicted; only read */
	int64_t evicted_ms; /* 0: it is ready; only read */
};

/* Names of webhooks. */
struct store_webhooks {
	unsigned n;
	char names[POLICY_WEBHOOKS + 1][NAME_MAX_LEN]; /* and traces.c */
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
	const char *pipeline;                  /* the harness's text where it is one, else NULL */
	const char *parent;                    /* the pipeline whose step it is, or NULL */
	unsigned step;                         /* which, from 1 */
	const struct store_webhooks *webhooks; /* that are to be told of it; only written */
	const char *repo;  /* JSON of what it asks to be checked out; likewise */
	const char *trace; /* that it came with (trace.h), or NULL */
};

/* A run that has ended, as retention sees it. */
enum store_gone { STORE_GONE_EVENTS = 1, STORE_GONE_ARTIFACTS = 2 };
struct store_ended {
	const char *id, *session;
	int64_t ended_ms;
	unsigned gone;
	bool owed; /* a webhook is still to be told of it, or its session is pinned */
};

/* An artifact that is, or is to be, in root's bucket, too (uploads.h). */
enum object_state { OBJECT_PENDING = 1, OBJECT_DONE, OBJECT_FAILED, OBJECT_DELETING };
struct store_object {
	const char *run, *session, *path, *sha256;
	const char *place; /* which bucket; written: NULL leaves it */
	const char *error; /* of the latest attempt; "" or NULL: none */
	size_t n;          /* of the run's artifacts */
	uint64_t bytes;
	enum object_state state;
	int64_t due_ms;   /* wall clock: the next attempt */
	int64_t since_ms; /* it is to be put, or deleted, since then; only read */
	unsigned failures;
	bool gone_here; /* the bytes are there alone */
	bool told;      /* of the run; only read */
};

/* What a webhook is still to be told of a run. */
struct store_delivery {
	const char *webhook, *run, *session, *user, *goal, *harness;
	uint64_t seq; /* of the first event that it may not have been told of */
	bool over;    /* the run has ended */
};

struct store_finish {
	const char *run, *session, *status, *result;
	int64_t ended_ms;
	const char *backend, *resume; /* resume NULL: left as it is; "": forgotten */
	const struct artifact *artifacts;
	size_t nartifacts;
	const char *place; /* where they are to be put, too; NULL: nowhere */
	bool asked_repo;   /* store_run.repo was there */
	uint64_t settled;  /* 0, or the reservation shrinks to this number: nothing more is owed */
};

/* ---- writing ---- */
void store_add_session(
        struct store *st, const struct store_session *s, store_done_fn *done, void *ctx);
/* The session too, if it is new; its reservation becomes at least s->reserved.  key and hash: the
 * idempotency key and the digest of the request, or NULL. */
void store_add_run(struct store *st, const struct store_session *s, const struct store_run *r,
        const char *key, const char *hash, store_done_fn *done, void *ctx);
void store_start_run(struct store *st, const char *run, int64_t started_ms);
/* A command was in it until now. */
void store_use_session(struct store *st, const char *session, int64_t ms);
/* It is ready no more, until its next run (store_add_session, store_add_run). */
void store_evict_session(
        struct store *st, const char *session, int64_t ms, store_done_fn *done, void *ctx);
void store_pin_session(
        struct store *st, const char *session, bool pinned, store_done_fn *done, void *ctx);
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
/* Events below `seq` are delivered, or given up; all of the run's. */
void store_delivered(struct store *st, const char *webhook, const char *run, uint64_t seq);
void store_delivered_all(struct store *st, const char *webhook, const char *run);
/* One text of the daemon's own by its name, in place of what it was. */
void store_set_meta(
        struct store *st, const char *key, const char *value, store_done_fn *done, void *ctx);
/* fdatasync on the writer's thread; takes fd. */
void store_sync(struct store *st, int fd, store_done_fn *done, void *ctx);
/* On the writer's thread, too: the first n kept artifacts of a run.  root_fd outlives the store. */
void store_sync_artifacts(
        struct store *st, int root_fd, const char *run, size_t n, store_done_fn *done, void *ctx);
/* What its workspace was checked out from. */
struct store_repo {
	char *source, *base, *ref; /* owned where it is read */
};
void store_set_repo(struct store *st, const char *session, const struct store_repo *x,
        store_done_fn *done, void *ctx);
/* An agent's own conversation, and the run up to which it goes; "": it knows of none. */
struct store_talk {
	const char *backend, *id, *run;
};
void store_take_talks(struct store *st, const char *session, const struct store_talk *all, size_t n,
        store_done_fn *done, void *ctx);
/* What retention has taken of a run (enum store_gone): told so, or the whole record. */
void store_gone(struct store *st, const char *run, unsigned gone, store_done_fn *done, void *ctx);
void store_drop_run(struct store *st, const char *run, store_done_fn *done, void *ctx);
/* Likewise when there is nothing else to do, or many such are there; nobody is told. */
void store_sync_later(struct store *st, int fd);
/* The session and everything of its runs. */
void store_delete_session(struct store *st, const char *session, store_done_fn *done, void *ctx);

/* ---- API keys: spec is JSON (apikeys.h) ---- */
struct store_key {
	const char *id, *hash, *spec;
};
void store_add_key(struct store *st, const struct store_key *k, store_done_fn *done, void *ctx);
void store_drop_key(struct store *st, const char *id, store_done_fn *done, void *ctx);

/* ---- artifacts in root's bucket ---- */
/* From one state to another: a row that is in none or another one stays as it is. */
void store_object_set(struct store *st, const struct store_object *x, enum object_state was,
        store_done_fn *done, void *ctx);
/* One that was to be deleted, and is. */
void store_object_drop(struct store *st, const char *run, size_t n, store_done_fn *done, void *ctx);
/* Its event is written; sync_fd as of store_finish_run. */
void store_objects_told(
        struct store *st, const char *run, int sync_fd, store_done_fn *done, void *ctx);
typedef void store_object_fn(void *ctx, const struct store_object *x);
/* In that state and due, the longest first. */
MUST_USE int store_objects_due(struct store *st, enum object_state state, int64_t now_ms,
        unsigned limit, store_object_fn *each, void *ctx, struct err *e);
/* When the next after that time is due; 0: none is. */
int64_t store_objects_next(struct store *st, enum object_state state, int64_t after_ms);
uint64_t store_objects_pending(struct store *st);
/* Of a run, by their numbers. */
MUST_USE int store_objects(
        struct store *st, const char *run, store_object_fn *each, void *ctx, struct err *e);
/* Runs whose artifacts are all at an end, and whose event may not be written; run and session. */
MUST_USE int store_objects_untold(
        struct store *st, store_object_fn *each, void *ctx, struct err *e);

/* A copy of the whole database as a new file; done() when it is whole.  One at a time: -EBUSY. */
void store_copy(struct store *st, const char *path, store_done_fn *done, void *ctx);

/* ---- reading: 0, -ENOENT, or -EIO ---- */
typedef void store_session_fn(void *ctx, const struct store_session *s);
typedef void store_run_fn(void *ctx, const struct store_run *r);
typedef void store_artifact_fn(void *ctx, size_t n, const struct artifact *a);

MUST_USE int store_session(
        struct store *st, const char *id, store_session_fn *each, void *ctx, struct err *e);
/* The id of the pair's session. */
MUST_USE int store_session_id(
        struct store *st, const char *user, const char *goal, char ret[ID_MAX], struct err *e);
/* What of all there is somebody may see; each NULL where that is all of it. */
struct store_view {
	const char *from, *to; /* owners: a range (owner_range) */
	const char *owners;    /* owners: those of a JSON array */
	const char *harnesses; /* of runs: those of a JSON array */
};
/* NULL: any.  Newest first, ids below `cursor`. */
MUST_USE int store_sessions(struct store *st, const char *user, const char *goal,
        const struct store_view *view, const char *cursor, unsigned limit, store_session_fn *each,
        void *ctx, struct err *e);
size_t store_session_count(struct store *st);
size_t store_ready_count(struct store *st); /* those that are not evicted */
/* Of those that are ready and not pinned and have no run without an end, the longest idle first:
 * last used at used_ms or before. */
typedef void store_idle_fn(void *ctx, const char *id, int64_t used_ms);
MUST_USE int store_idle(struct store *st, int64_t used_ms, unsigned limit, store_idle_fn *each,
        void *ctx, struct err *e);
/* "" where there is none; what does not fit is -ENOBUFS. */
MUST_USE int store_meta(struct store *st, const char *key, char *ret, size_t size, struct err *e);

struct store_run_filter {
	const char *user, *goal, *session, *harness, *status, *cursor;
	const char *since, *until;     /* ids: from the first on, up to the second (id_from) */
	const struct store_view *view; /* NULL: all */
	unsigned limit;
};
MUST_USE int store_run(
        struct store *st, const char *id, store_run_fn *each, void *ctx, struct err *e);
/* Whose a run or a session is; harness NULL: a session. */
typedef void store_owner_fn(void *ctx, const char *owner, const char *harness);
MUST_USE int store_run_owner(
        struct store *st, const char *id, store_owner_fn *each, void *ctx, struct err *e);
MUST_USE int store_session_owner(
        struct store *st, const char *id, store_owner_fn *each, void *ctx, struct err *e);
MUST_USE int store_runs(struct store *st, const struct store_run_filter *f, store_run_fn *each,
        void *ctx, struct err *e);
/* How many runs there are, by their status. */
typedef void store_count_fn(void *ctx, const char *status, uint64_t n);
MUST_USE int store_run_counts(struct store *st, const struct store_view *view, store_count_fn *each,
        void *ctx, struct err *e);
/* Those that have ended before `before_ms`, in order of their ends, behind (after_ms, after). */
typedef void store_ended_fn(void *ctx, const struct store_ended *r);
MUST_USE int store_ended(struct store *st, int64_t after_ms, const char *after, int64_t before_ms,
        unsigned limit, store_ended_fn *each, void *ctx, struct err *e);
/* When the run ended that `n` others have ended after; 0 where there are fewer. */
MUST_USE int store_nth_end(struct store *st, uint64_t n, int64_t *ret_ms, struct err *e);
/* The first event of those runs of a session that have not ended, or not before that time, or are
 * owed; UINT64_MAX where there is none. */
MUST_USE int store_kept_from(
        struct store *st, const char *session, int64_t before_ms, uint64_t *ret_seq, struct err *e);
/* Those without an end, oldest first. */
MUST_USE int store_unfinished(struct store *st, store_run_fn *each, void *ctx, struct err *e);
/* The runs of a pipeline's steps, in their order. */
MUST_USE int store_steps(
        struct store *st, const char *pipeline, store_run_fn *each, void *ctx, struct err *e);
MUST_USE int store_artifacts(
        struct store *st, const char *run, store_artifact_fn *each, void *ctx, struct err *e);
/* An agent's own id of its conversation (owned by the caller; NULL where none) and the run up to
 * which that goes. */
char *store_resume(
        struct store *st, const char *session, const char *backend, char ret_run[ID_MAX]);
/* All of a session's. */
typedef void store_talk_fn(void *ctx, const struct store_talk *x);
MUST_USE int store_talks(
        struct store *st, const char *session, store_talk_fn *each, void *ctx, struct err *e);
/* Nothing where nothing is known. */
MUST_USE int store_spent(struct store *st, uint32_t scope, const char *id, int64_t day,
        struct spending *ret, struct err *e);
/* What the accounts from `from` to below `to` have spent together. */
MUST_USE int store_spent_range(struct store *st, uint32_t scope, const char *from, const char *to,
        int64_t day, struct budget *ret, struct err *e);
/* The oldest first. */
typedef void store_key_fn(void *ctx, const struct store_key *k);
MUST_USE int store_keys(struct store *st, store_key_fn *each, void *ctx, struct err *e);
/* -ENOENT: it has none. */
MUST_USE int store_repo(
        struct store *st, const char *session, struct store_repo *ret, struct err *e);
void store_repo_done(struct store_repo *x); /* zeroed is fine */
/* JSON (owned) of what a run that has not ended asks to be checked out; NULL: nothing, or *e is
 * set. */
char *store_checkout(struct store *st, const char *run, struct err *e);
typedef void store_delivery_fn(void *ctx, const struct store_delivery *x);
/* All that is left, the oldest run first. */
MUST_USE int store_deliveries(struct store *st, store_delivery_fn *each, void *ctx, struct err *e);
/* -ENOENT, or the run that the key stands for and the digest of its request. */
MUST_USE int store_idempotent(struct store *st, const char *user, const char *key,
        char ret_run[ID_MAX], char ret_hash[65]);

#endif
