/*
 * journal.h - what a run's supervisor has taken from its agent, so that the next
 * supervisor can go on where it was: <state>/journals/<run>.
 *
 * A page of state that is mapped (a store into it outlives a SIGKILL), then
 * every read of the agent's output as it came, in order.  Drivers are pure:
 * the same bytes bring the same state and the same events, of which the log
 * already has the first ones.  So nothing of a driver is ever saved.
 *
 * It is written before anything is made of the bytes, and is not synced: it is
 * of use only while the run's jail lives, and no jail outlives the host.
 * It goes with the run's end.
 */
#ifndef SUPERVISOR_JOURNAL_H
#define SUPERVISOR_JOURNAL_H

#include "base/err.h"
#include "base/id.h"
#include "policy/ledger.h"

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
	JOURNAL_TYPES
};

struct journal_asked {
	int64_t asked_ms, due_us; /* as in struct ask */
	uint64_t question;        /* 0: a permission */
	                          /* then its id */
};

enum { JOURNAL_WHY = 512 };

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
	uint8_t judged;                         /* the verdict stands: */
	uint32_t status;                        /* enum run_status */
	char why[JOURNAL_WHY];                  /* "" without one */
	struct tokens tokens;                   /* what it has used, as far as was told: */
	struct spending spent;
};

/* ---- life ---- */

/* A new one, in place of any other of that run.  Returns owned. */
struct journal *journal_new(int dirfd, const char *run, struct err *e);
/* That of an earlier supervisor.  NULL: there is none (-ENOENT), or it is of no use. */
struct journal *journal_open(int dirfd, const char *run, struct err *e);
void journal_close(struct journal *j); /* the file stays; NULL is fine */
void journal_remove(int dirfd, const char *run);
/* Removes those for which `wanted` says no. */
void journal_sweep(int dirfd, bool (*wanted)(void *ctx, const char *run), void *ctx);

/* ---- use ---- */

struct journal_state *journal_state(struct journal *j);
/* On failure the journal is broken, and -errno is given once; later calls do nothing. */
MUST_USE int journal_put(
        struct journal *j, enum journal_type t, const void *p, size_t n, struct err *e);
/* Each record in order, up to the last whole one; stops where `each` gives less than 0, and gives
 * that. */
typedef int journal_fn(void *ctx, enum journal_type t, const char *p, size_t n);
MUST_USE int journal_each(struct journal *j, journal_fn *each, void *ctx, struct err *e);

#endif
