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
#include "supervisor/owner.h"
#include "supervisor/sched.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct daemon;
struct sessions;
struct store_view;

struct shared_jail;
struct session {
	struct list link; /* in sessions.live */
	char id[ID_MAX];
	char *user, *goal;         /* owned; user: an owner (owner.h), as in all of this */
	struct sched_session lane; /* its runs, in order */
	/* A pipeline has it: those run in here, and `lane` is held until that has ended. */
	struct sched_session steps;
	bool piped;
	uint64_t jail; /* of the running run or exec, 0: none (further execs join it) */
	struct shared_jail *commands; /* borrowed: that jail is one of commands; NULL: a run's */
	char policy[NAME_MAX_LEN];    /* the jail's */
	bool seeded;                  /* seed files were written once */
	bool coming;                  /* it was not ready yet when it was held first */
	unsigned users;               /* runs and execs that hold it; freed at 0 */
	unsigned makers;              /* of those, until a commit (sessions_make) */
};

/* Where what may run in it now stands in line. */
static inline struct sched_session *session_lane(struct session *x)
{
	return x->piped ? &x->steps : &x->lane;
}

struct sessions *sessions_new(struct daemon *d);
void sessions_free(struct sessions *s);

/* -EINVAL with the reason: empty, longer than SESSION_PART_MAX, control characters, not UTF-8. */
MUST_USE int session_part_check(const char *what, const char *text, struct err *e);
/* Likewise for an owner: a tenant's name, or none, and a user's. */
MUST_USE int session_owner_check(const char *owner, struct err *e);

/* The pair's session in memory, counted up; a new id when there is none yet (it becomes durable
 * with the commit of its first run).  -EINVAL, -EBUSY while it is being deleted. */
MUST_USE int sessions_hold(struct sessions *s, const char *user, const char *goal,
        struct session **ret, struct err *e);
/* The same for a run that is new: where the session is not ready there has to be room for one more
 * (sessions_guard), else -EDQUOT.  `fresh` is the id that a new one gets (one that was made ahead),
 * NULL: any. */
MUST_USE int sessions_hold_fresh(struct sessions *s, const char *user, const char *goal,
        const char *fresh, struct session **ret, struct err *e);
/* The same for a session that is known, by its id.  -ENOENT, -EBUSY while it is being deleted. */
MUST_USE int sessions_hold_id(
        struct sessions *s, const char *id, struct session **ret, struct err *e);
void sessions_drop(struct sessions *s, struct session *x);
/* In memory (a run of it waits or runs), or NULL. */
struct session *sessions_live(struct sessions *s, const char *id);
size_t sessions_count(struct sessions *s); /* stored ones, for metrics */

/* ---- how many there may be (evict.h) ---- */

/* Makes room for one more that is ready: 0, or -EDQUOT. */
typedef int sessions_room_fn(void *ctx, struct err *e);
void sessions_guard(struct sessions *s, sessions_room_fn *room, void *ctx);
/* Those that are ready, or are about to be. */
size_t sessions_ready(const struct sessions *s);
size_t sessions_live_count(const struct sessions *s);
/* Nothing but the store knows of it, and that for good: it may be evicted. */
bool sessions_idle(const struct sessions *s, const char *id);

/* Never to be evicted, or as others; done() comes after the commit, on the loop.  -ENOENT. */
typedef void sessions_pinned_fn(void *ctx, int rc, const struct err *e);
void sessions_pin(
        struct sessions *s, const char *id, bool pinned, sessions_pinned_fn *done, void *ctx);

/* ---- for the API ---- */

struct sessions_filter {
	const char *user, *goal;       /* NULL: any */
	const struct store_view *view; /* NULL: all */
	const char *cursor;            /* id after which to go on, or NULL */
	unsigned limit;
};
/* Appends one JSON object; -ENOENT. */
MUST_USE int sessions_show(struct sessions *s, const char *id, struct buf *json, struct err *e);
/* Likewise with its limits of the disk, and what it was seen to have there. */
MUST_USE int sessions_show_disk(
        struct sessions *s, const char *id, struct buf *json, struct err *e);
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
