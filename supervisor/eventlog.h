/*
 * eventlog.h - the events of sessions: one append-only file of JSON Lines each,
 * <state>/events/<session>.jsonl, numbered from 1 without gaps.
 *
 * An event is encoded once, here, as
 *	{"seq":N,"ts":"...","session":"ses_...","run":"run_...","type":"...",members}
 * and written before anyone hears of it.  Readers hold a cursor and never see
 * beyond what is `visible`: numbers not yet reserved in the store and a
 * run.done whose commit is not synced stay hidden.  Bytes are synced at most
 * EVENTLOG_SYNC_MS after they were written.
 *
 * After a torn write the file is cut to its last whole line at open.  After a
 * power cut the numbers go on past everything that was reserved, and a log.gap
 * event says so.
 */
#ifndef SUPERVISOR_EVENTLOG_H
#define SUPERVISOR_EVENTLOG_H

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "drivers/event.h"
#include "supervisor/logline.h"

#include <stdbool.h>
#include <stdint.h>

struct eventlog;
struct hub;
struct loop;
struct stats;
struct store;

enum {
	EVENTLOG_SYNC_MS = 1000,    /* the promise: a power cut takes at most a second of events */
	EVENTLOG_BLOCK = 4096,      /* numbers reserved at a time: one commit per so many events */
	EVENTLOG_FDS = 256,         /* files open at once; more are closed and reopened as used */
	EVENTLOG_BEHIND = 32 << 20, /* unsynced bytes of a session beyond which agents must wait */
};

/* A position between two events: zero-initialise, or eventlog_seek. */
struct eventlog_cursor {
	char session[ID_MAX];
	uint64_t seq;    /* of the next event to read; 0 is as 1 */
	uint64_t offset; /* of that event in the file; valid when `placed` */
	bool placed;
};

/* ---- life ---- */

/* `dirfd` is borrowed for the life of the log (the state directory's events/).  loop may be NULL
 * in tests: then nothing is synced by time.  store may be NULL: nothing is reserved. */
struct eventlog *eventlog_new(
        int dirfd, struct loop *l, struct hub *h, struct store *st, struct stats *stats);
void eventlog_free(struct eventlog *g);

/* ---- writing ---- */

/* Opens (and repairs) the session's file now, so that errors come early.  -EIO, -ENOSPC... */
MUST_USE int eventlog_open(struct eventlog *g, const char *session, struct err *e);
/* Appends one event; members as in drivers/event.h.  On failure nothing of it is in the file.
 * `run` may be "". */
MUST_USE int eventlog_append(struct eventlog *g, const char *session, const char *run,
        enum event_type t, const char *members, size_t n, struct err *e);
/* As append, for run.done: hidden until eventlog_release of the number it gives. */
MUST_USE int eventlog_append_held(struct eventlog *g, const char *session, const char *run,
        enum event_type t, const char *members, size_t n, uint64_t *ret_seq, struct err *e);
/* 0 where such an event would be taken as one line, -ENOBUFS where it is too large. */
MUST_USE int eventlog_fits(struct eventlog *g, const char *session, const char *run,
        enum event_type t, const char *members, size_t n);
void eventlog_release(struct eventlog *g, const char *session, uint64_t seq);
/* The number the next event will get. */
uint64_t eventlog_next_seq(struct eventlog *g, const char *session);
/* Too much is written and not yet synced: stop reading from the agent for a while. */
bool eventlog_behind(struct eventlog *g, const char *session);
/* A duplicate of the session's descriptor to fdatasync elsewhere (owned), or -errno. */
MUST_USE int eventlog_sync_fd(struct eventlog *g, const char *session);
/* Syncs everything written, now (at exit). */
int eventlog_sync_all(struct eventlog *g, struct err *e);
/* The session is deleted: its file too. */
int eventlog_remove(struct eventlog *g, const char *session, struct err *e);

/* ---- what is not kept for ever ---- */

/* Events below `seq` go, but for the last event of all, by which the numbers go on.  Offsets stay
 * as they are: the room is given back by a hole.  0, also when nothing is to be done now;
 * -EOPNOTSUPP where the file system cannot. */
MUST_USE int eventlog_cut(struct eventlog *g, const char *session, uint64_t seq, struct err *e);
/* The number of the first event that is kept; 1 where none has gone. */
uint64_t eventlog_first(struct eventlog *g, const char *session);

/* For a copy of the file as it is now: a descriptor (owned), and from where to where whole events
 * are.  Of a log that is not in memory to the end, which may be torn.  -errno. */
MUST_USE int eventlog_raw(struct eventlog *g, const char *session, uint64_t *ret_from,
        uint64_t *ret_to, struct err *e);

/* ---- reading ---- */

/* Places the cursor at the first event with a number >= seq. */
int eventlog_seek(struct eventlog *g, const char *session, uint64_t seq,
        struct eventlog_cursor *ret, struct err *e);
/* Appends whole lines (each ends with \n) to `to`: at least one if one is visible, and no further
 * one beyond `max` bytes.  Bytes appended; 0: nothing more for now; -errno. */
MUST_USE int64_t eventlog_read(
        struct eventlog *g, struct eventlog_cursor *c, struct buf *to, size_t max, struct err *e);
/* Calls `each` for every line of that run with a number >= seq, visible or not. */
typedef void eventlog_each_fn(
        void *ctx, const char *type, size_t type_len, const char *line, size_t n);
void eventlog_each(struct eventlog *g, const char *session, const char *run, uint64_t seq,
        eventlog_each_fn *each, void *ctx);
/* Calls `line` for each line of the last `bytes` of the file, or somewhat more, visible or not,
 * until it gives false. */
void eventlog_tail(
        struct eventlog *g, const char *session, uint64_t bytes, logline_fn *line, void *ctx);
/* The line (owned, without newline) of the last event of that run and type ("run.done"), or NULL:
 * what happened before a crash. */
char *eventlog_find(struct eventlog *g, const char *session, const char *run, const char *type);

/* ---- reservations: runs.c puts them into its own commits ---- */

/* The number to reserve with the commit of a new run; eventlog_claimed after that commit. */
uint64_t eventlog_claim(struct eventlog *g, const char *session);
void eventlog_claimed(struct eventlog *g, const char *session, uint64_t upto);
/* The session falls idle: gives the last number, which the store is to hold as the reservation, so
 * that a power cut while idle leaves no gap. */
uint64_t eventlog_settle(struct eventlog *g, const char *session);

#endif
