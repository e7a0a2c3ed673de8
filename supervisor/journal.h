/*
 * journal.h - what a run's supervisor has taken from its agent, so that the next
 * supervisor can go on where it was: <state>/journals/<run>.
 *
 * Two pages of state that are mapped (a store into it outlives a SIGKILL), then
 * every read of the agent's output as it came, in order.  Drivers are pure:
 * the same bytes bring the same state and the same events, of which the log
 * already has the first ones.  So nothing of a driver is ever saved.
 *
 * It is written before anything is made of the bytes, and is not synced: it is
 * of use only while the run's jail lives, and no jail outlives the host.
 * With the run's end it becomes the run's raw log: what its agent has printed, as it came.  Of a
 * long one the middle goes; of all together the oldest (journal_prune).
 */
#ifndef SUPERVISOR_JOURNAL_H
#define SUPERVISOR_JOURNAL_H

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "policy/ledger.h"
#include "proto/jail.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct journal;

enum journal_type {
	JOURNAL_HARNESS,   /* file name, NUL, text: what the run began with */
	JOURNAL_STDOUT,    /* one read; no bytes: its end */
	JOURNAL_STDERR,    /* likewise */
	JOURNAL_INTERRUPT, /* the driver was told to ask the agent to stop */
	JOURNAL_ASKED,     /* struct journal_asked: since when and until when a question waits */
	JOURNAL_SAID,      /* a person or the harness said something to the agent: said.h */
	JOURNAL_RESUME,    /* resume.h: what its agent was told of earlier runs */
	JOURNAL_LIVE,      /* after the harness, of an agent that waited: what its driver is told */
	JOURNAL_RESULT,    /* its result, should nobody come to know its changes: runner_repo.c */
	JOURNAL_TYPES
};

struct journal_asked {
	int64_t asked_ms, due_us; /* as in struct ask */
	uint64_t question;        /* 0: a permission */
	                          /* then its id */
};

enum {
	JOURNAL_WHY = 512,
	JOURNAL_MARK = 1 << 20, /* so far apart are the offsets that are remembered, at least */
	JOURNAL_MARKS = 20,
	JOURNAL_KEPT = 16 * JOURNAL_MARK, /* of one run after its end, some records more or less */
};

/* Mapped: plain stores. */
struct journal_state {
	uint32_t magic, size;
	char run[ID_MAX];
	uint64_t end;                           /* of the last whole record */
	int64_t queued_us, slot_us, started_us; /* monotonic */
	int64_t deadline_us;                    /* likewise */
	uint64_t stdin_done;                    /* bytes written to the agent */
	uint8_t reading[2];                     /* a read may have taken bytes: stdout, stderr */
	uint8_t writing;                        /* a write may have given bytes */
	uint8_t broken;                         /* it could not be kept up: of no use */
	uint8_t driving;                        /* the driver has the word */
	uint8_t deaths;                         /* supervisors that ended while it had */
	uint8_t ended;                          /* nothing more comes */
	uint8_t verifying;                      /* the agent has succeeded and is gone */
	uint8_t judged;                         /* the verdict stands: */
	/* Of stdout and stderr what was read and not told, for it could be the beginning of a
	 * secret; not readable without the run's veil (veil_crypt). */
	uint32_t nwaits[2];
	uint64_t waits_number[2];
	char waits[2][VEIL_WINDOW];
	uint32_t status;       /* enum run_status */
	char why[JOURNAL_WHY]; /* "" without one */
	struct tokens tokens;  /* what it has used, as far as was told: */
	struct spending spent;
	struct jail_resources before; /* what the jail had used when it began */
	struct jail_found agent;      /* with `verifying`: of its agent's jail, which is released;
	                                 until the run's end, for its veil */
	/* Where records begin: the first one behind JOURNAL_MARK, and the latest. */
	uint64_t first_mark, marks[JOURNAL_MARKS];
	uint32_t nmarks;           /* in all; of marks[] as a ring */
	uint64_t gap_from, gap_to; /* cut out */
};

/* ---- life ---- */

/* A new one, in place of any other of that run.  Returns owned. */
struct journal *journal_new(int dirfd, const char *run, struct err *e);
/* That of an earlier supervisor.  NULL: there is none (-ENOENT), or it is of no use. */
struct journal *journal_open(int dirfd, const char *run, struct err *e);
/* Its run has ended: it stays, cut.  Its bytes on the disk. */
uint64_t journal_end(struct journal *j);
/* A duplicate of its descriptor to sync elsewhere (owned), or -errno. */
MUST_USE int journal_sync_fd(const struct journal *j);
void journal_close(struct journal *j); /* the file stays; NULL is fine */
void journal_remove(int dirfd, const char *run);
typedef bool journal_which_fn(void *ctx, const char *run);
/* Removes those for which `wanted` says no. */
void journal_sweep(int dirfd, journal_which_fn *wanted, void *ctx);
/* Removes the oldest ones, but for those in use, until all take at most `most`.  What they take. */
uint64_t journal_prune(int dirfd, uint64_t most, journal_which_fn *in_use, void *ctx);

/* ---- use ---- */

struct journal_state *journal_state(struct journal *j);
/* Around every call of the driver: a supervisor that ends in between was probably killed by it. */
void journal_driving(struct journal *j, bool on); /* NULL is fine */
/* Counts it if the supervisor before this one ended so.  -ELOOP: too many in a row did, which no
 * further one shall; what comes from the agent live and is understood ends the row. */
MUST_USE int journal_deaths(struct journal *j, struct err *e);
/* On failure the journal is broken, and -errno is given once; later calls do nothing. */
MUST_USE int journal_put(
        struct journal *j, enum journal_type t, const void *p, size_t n, struct err *e);
/* Each record in order, up to the last whole one; stops where `each` gives less than 0, and gives
 * that. */
typedef int journal_fn(void *ctx, enum journal_type t, const char *p, size_t n);
MUST_USE int journal_each(struct journal *j, journal_fn *each, void *ctx, struct err *e);

/* What was read of stdout (0) or stderr (1) and is not told yet; at most VEIL_WINDOW bytes. */
void journal_waits(
        struct journal *j, const struct veil *v, unsigned stream, const char *p, size_t n);
size_t journal_waited(
        struct journal *j, const struct veil *v, unsigned stream, char ret[VEIL_WINDOW]);

/* ---- reading it as a raw log, also while it is written ---- */

struct journal_reader {
	int fd; /* owned; -1: not open */
	uint64_t at;
};
/* -ENOENT: there is none. */
MUST_USE int journal_reader_open(
        int dirfd, const char *run, struct journal_reader *ret, struct err *e);
void journal_reader_done(struct journal_reader *r);
struct journal_raw {
	enum journal_type type;
	uint64_t gap;  /* so many bytes are missing here; then no record */
	bool ended;    /* no record, and none will come */
	bool broken;   /* likewise, for the disk was full */
	const char *p; /* in `into` */
	size_t n;
};
/* 1: a record, or a gap; 0: none for now, or no more; -errno. */
MUST_USE int journal_reader_next(
        struct journal_reader *r, struct buf *into, struct journal_raw *ret, struct err *e);

#endif
