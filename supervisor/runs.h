/*
 * runs.h - runs: accept, queue, list, cancel.
 *
 * A run is accepted when its record is committed; only then does done() come
 * and the client may be told.  How a run proceeds is run.h (the table of
 * states) and runner_*.h (what is done at each step).  Following a run means a
 * cursor into its session's event log (eventlog.h) from run_info.from_seq on, keeping
 * lines whose run is this one, until run.done.
 */
#ifndef SUPERVISOR_RUNS_H
#define SUPERVISOR_RUNS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "proto/jail.h"
#include "supervisor/sessions.h"
#include "supervisor/stats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct daemon;
struct jail_objected;
struct runs;
struct run;
struct said;
struct repo_ask;
struct store_view;

struct run_request {
	const char *user, *goal, *harness; /* user: an owner (owner.h) */
	const char *prompt;                /* any bytes without NUL, UTF-8 */
	size_t prompt_len;
	const char *idempotency_key; /* NULL: none; per user */
	int priority;                /* 0..9, 9 first; within the user's own runs */
	/* {{name}} in the prompt and the system prompt is replaced by the value. */
	const char *const *param_names, *const *param_values;
	size_t nparams;
	const struct repo_ask *repo;          /* NULL: what the harness says */
	const char *traceparent, *tracestate; /* as they came; NULL: none */
};

struct run_info {
	char id[ID_MAX], session[ID_MAX];
	char harness[NAME_MAX_LEN];
	char status[16];   /* queued running, or the end's status */
	uint64_t from_seq; /* no event of the run has a smaller number */
	bool finished;
	bool guarded; /* it is not, and its output may yet be denied */
	bool existed; /* create: the idempotency key was known, this is the earlier run */
};

struct runs *runs_new(struct daemon *d);
void runs_free(struct runs *r);
/* A jail that another supervisor made for a run and left; fds as of JAIL_FOUND, taken. */
void runs_found(struct runs *r, const struct jail_found *x, int fds[MSG_FDS]);
/* Then takes up what the store holds from before: runs whose jail was found go on, queued ones
 * wait again, the others were interrupted. */
MUST_USE int runs_recover(struct runs *r, enum jail_former former, struct err *e);

/* `rc` < 0: refused (-EINVAL request, -ENOENT harness, -ENOEXEC harness cannot be honoured or
 * policy unmet, -EAGAIN queue full, -EBUSY key used for another request, -ESHUTDOWN draining).
 * May be called before runs_create returns when it is refused. */
typedef void runs_created_fn(void *ctx, int rc, const struct run_info *info, const struct err *e);
void runs_create(struct runs *r, const struct run_request *q, runs_created_fn *done, void *ctx);

MUST_USE int runs_info(struct runs *r, const char *id, struct run_info *ret, struct err *e);
/* `now`: without asking the agent first.  0, also when it is already being cancelled; -ENOENT;
 * -EALREADY when it has ended. */
MUST_USE int runs_cancel(struct runs *r, const char *id, bool now, struct err *e);

/* Tells the agent of a run.  As runner_talk_say; -ENOENT also without such a run, -EBUSY also when
 * it has ended. */
MUST_USE int runs_say(struct runs *r, const char *id, const struct said *s, struct err *e);

/* A command wants the session's workspace for itself: its runs wait until runs_let_session.
 * -ENOENT; -EBUSY while one of them runs or another command has it. */
MUST_USE int runs_keep_session(struct runs *r, const char *id, struct session **ret, struct err *e);
void runs_let_session(struct runs *r, struct session *x);

/* ---- JSON for the API: objects as documented in docs/API.md ---- */
MUST_USE int runs_show(struct runs *r, const char *id, struct buf *json, struct err *e);

/* The result alone; -ENOENT without one. */
MUST_USE int runs_result(struct runs *r, const char *id, struct buf *json, struct err *e);

struct runs_filter {
	const char *user, *goal, *session, *harness, *status; /* NULL: any */
	const struct store_view *view;                        /* NULL: all */
	const char *since, *until;                            /* ids of times (id_from), or NULL */
	const char *cursor; /* id after which to go on (newest first), or NULL */
	unsigned limit;     /* 1..1000 */
};
/* Appends objects separated by commas (no brackets); ret_next is "" at the end. */
MUST_USE int runs_list(struct runs *r, const struct runs_filter *f, struct buf *json,
        char ret_next[ID_MAX], struct err *e);
/* ---- runs_artifacts.c ---- */
/* Objects {"path","bytes","sha256","upload"?} separated by commas. */
MUST_USE int runs_artifacts(struct runs *r, const char *id, struct buf *json, struct err *e);
/* A result as it is written, with what has become of its artifacts since (owned). */
char *runs_result_now(struct runs *r, const char *id, const char *result);
/* Opens the kept copy of an artifact to read: fd (owned), size and digest (hex), or -errno;
 * -EREMOTE: it is in root's bucket alone. */
MUST_USE int runs_artifact_open(struct runs *r, const char *id, const char *path,
        uint64_t *ret_bytes, char ret_sha256[65], struct err *e);
/* A link to it there (uploads.h); -ENOENT also where it is not. */
MUST_USE int runs_artifact_link(struct runs *r, const char *id, const char *path,
        void (*done)(void *ctx, const struct jail_objected *m), void *ctx, struct err *e);

/* Begins what may begin: what kept queued runs waiting has ended. */
void runs_schedule(struct runs *r);

/* Seconds after which one refused with -EAGAIN may find room: for Retry-After. */
unsigned runs_retry_after(const struct runs *r, const char *owner);

/* Does any run? */
bool runs_any(const struct runs *r);
/* The disk has little room: once to each that runs. */
void runs_tell_low(struct runs *r);

/* How many agents may wait for a run beside those that run. */
size_t runs_room_to_wait(const struct runs *r);

/* ---- stopping ---- */
/* From the first call on nothing new is begun or taken from an agent; true when each run is where
 * the next supervisor can go on with it. */
MUST_USE bool runs_hand_over(struct runs *r);
/* Ends running runs as interrupted (queued ones stay queued); done() when the last is saved. */
void runs_stop(struct runs *r, void (*done)(void *ctx), void *ctx);

#endif
