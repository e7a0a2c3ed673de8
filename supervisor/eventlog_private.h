/*
 * eventlog_private.h - struct eventlog, shared by eventlog.c (open, write, read),
 * eventlog_commit.c (reservations, visibility, syncs) and eventlog_cut.c (what goes).
 */
#ifndef SUPERVISOR_EVENTLOG_PRIVATE_H
#define SUPERVISOR_EVENTLOG_PRIVATE_H

#include "base/buf.h"
#include "base/id.h"
#include "base/list.h"
#include "supervisor/logline.h"
#include "supervisor/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hub;
struct stats;
struct store;

enum { EVENTLOG_BUCKETS = 1024 };

struct hidden {
	uint64_t seq, end;
	bool held;
};

struct log {
	struct list link;  /* in eventlog.buckets */
	struct list age;   /* in eventlog.ages, least recently used first */
	struct list dirty; /* in eventlog.dirty while bytes are not synced */
	char session[ID_MAX];
	int fd;            /* owned */
	uint64_t first;    /* number of the first event that is kept; 0: there is none */
	uint64_t start;    /* its offset: what was before is a hole */
	uint64_t last;     /* offset of the last event */
	uint64_t next;     /* number of the next event */
	uint64_t size;     /* bytes in the file */
	uint64_t visible;  /* bytes readers may see */
	uint64_t reserved; /* numbers that may be delivered */
	uint64_t epoch;    /* counts settlements: an older claim does not count */
	bool claiming;     /* a reservation is on its way */
	bool claim_failed; /* said once; tried again at each tick */
	unsigned busy;     /* syncs and claims on their way: not to be evicted */
	uint64_t unsynced; /* bytes written since the last sync was asked for */
	uint64_t syncing;  /* bytes a sync on its way covers */
	int failed;        /* -errno of a sync: nothing more is accepted */
	struct logline_index index;
	struct hidden *hidden; /* owned; from first_hidden on */
	size_t first_hidden, nhidden, hidden_room;
};

struct eventlog {
	int dirfd; /* borrowed */
	struct loop *loop;
	struct hub *hub;
	struct store *store;
	struct stats *stats;
	struct list buckets[EVENTLOG_BUCKETS];
	struct list ages, dirty;
	size_t open;
	struct logline_writer out;
	struct op tick;
};

/* The session's log in memory (used just now), or NULL. */
struct log *eventlog_log(struct eventlog *g, const char *session);

/* Where the first event of a file is: behind the hole of those that are gone. */
uint64_t eventlog_start(int fd);
/* Where to begin to look for this number. */
uint64_t eventlog_at(const struct log *l, uint64_t seq);

/* A line was written: it stays hidden until its number may be delivered and, `held`, until it is
 * released. */
void eventlog_written(struct eventlog *g, struct log *l, uint64_t seq, size_t bytes, bool held);

#endif
