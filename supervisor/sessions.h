/*
 * sessions.h - sessions: a (user, goal) pair with its workspace and home.
 *
 * The id is random and the pair is unique in the store, so no two pairs can
 * share a workspace.  A struct session is in memory while a run of it waits or
 * runs, or a command in it has its jail; everything else is asked of the store.
 */
#ifndef SUPERVISOR_SESSIONS_H
#define SUPERVISOR_SESSIONS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "base/list.h"
#include "supervisor/sched.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct daemon;
struct sessions;

enum { SESSION_PART_MAX = 256 }; /* bytes of userId and of goalId, without NUL */

struct shared_jail;
struct session {
	struct list link; /* in sessions.live */
	char id[ID_MAX];
	char *user, *goal;         /* owned */
	struct sched_session lane; /* its runs, in order */
	uint64_t jail;             /* of the running run or exec, 0: none (further execs join it) */
	struct shared_jail *commands; /* borrowed: that jail is one of commands; NULL: a run's */
	char policy[NAME_MAX_LEN];    /* the jail's */
	bool seeded;                  /* seed files were written once */
	unsigned users;               /* runs and execs that hold it; freed at 0 */
};

struct sessions *sessions_new(struct daemon *d);
void sessions_free(struct sessions *s);

/* -EINVAL with the reason: empty, longer than SESSION_PART_MAX, control characters, not UTF-8. */
MUST_USE int session_part_check(const char *what, const char *text, struct err *e);

/* The pair's session in memory, counted up; a new id when there is none yet (it becomes durable
 * with the commit of its first run).  -EINVAL, -EBUSY while it is being deleted. */
MUST_USE int sessions_hold(struct sessions *s, const char *user, const char *goal,
        struct session **ret, struct err *e);
/* The same for a session that is known, by its id.  -ENOENT, -EBUSY while it is being deleted. */
MUST_USE int sessions_hold_id(
        struct sessions *s, const char *id, struct session **ret, struct err *e);
void sessions_drop(struct sessions *s, struct session *x);
/* In memory (a run of it waits or runs), or NULL. */
struct session *sessions_live(struct sessions *s, const char *id);
size_t sessions_count(struct sessions *s); /* stored ones, for metrics */

/* ---- for the API ---- */

struct sessions_filter {
	const char *user, *goal; /* NULL: any */
	const char *cursor;      /* id after which to go on, or NULL */
	unsigned limit;
};
/* Appends one JSON object; -ENOENT. */
MUST_USE int sessions_show(struct sessions *s, const char *id, struct buf *json, struct err *e);
/* Appends objects separated by commas (no brackets); ret_next is "" at the end. */
MUST_USE int sessions_list(struct sessions *s, const struct sessions_filter *f, struct buf *json,
        char ret_next[ID_MAX], struct err *e);
/* Makes the session of the pair or finds it; done() comes after the commit, on the loop. */
typedef void sessions_made_fn(void *ctx, int rc, const char *id, const struct err *e);
void sessions_make(
        struct sessions *s, const char *user, const char *goal, sessions_made_fn *done, void *ctx);
/* Workspace, home, events, artifacts and records of the session.  -EBUSY through done() while a
 * run of it waits or runs, -ENOENT. */
typedef void sessions_done_fn(void *ctx, int rc, const struct err *e);
void sessions_delete(struct sessions *s, const char *id, sessions_done_fn *done, void *ctx);

#endif
