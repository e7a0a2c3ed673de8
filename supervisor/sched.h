/*
 * sched.h - who runs next.  Pure: no clock (time is passed in), no descriptors,
 * no allocation but one record for each user and tenant with work.
 *
 * Slots are shared by tenants, and a tenant's by its users, by weight and by the
 * time they are held (share.h); caps bound how many each may hold.  Within a user
 * the highest priority first, then in order of arrival; a session runs one job
 * at a time and its jobs in order, and a job whose session is busy takes no slot and does not
 * stand in anyone's way.  Nor does one that pauses between two attempts: but
 * its session stays its own.
 *
 * Memory and processors may be bounded, too, by what jobs are promised.  One that does not
 * fit when it is its turn gets a reservation: until it starts, others only take what they
 * will not be in its way with.
 */
#ifndef SUPERVISOR_SCHED_H
#define SUPERVISOR_SCHED_H

#include "base/err.h"
#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_share;
struct sched;
struct sched_job;
struct sched_user;

/* Embedded in a session. */
struct sched_session {
	struct list jobs;         /* waiting jobs (sched_job.link), in order */
	struct list ready;        /* link in sched_user.ready while idle and with jobs */
	bool busy;                /* one of its jobs runs */
	bool held;                /* by sched_hold: none of its jobs may run */
	struct sched_job *paused; /* borrowed: that goes on before any other, or NULL */
	struct sched_user *user;  /* borrowed while it has jobs */
};
void sched_session_init(struct sched_session *s);

/* What a job is promised; 0: nothing that counts. */
struct sched_need {
	uint64_t memory_bytes, cpu_milli;
};

/* Embedded in a run. */
struct sched_job {
	struct list link; /* in sched_session.jobs while waiting */
	struct list mine; /* in sched_user.waiting, likewise */
	struct sched_session *session;
	struct sched_user *user; /* borrowed from sched_expect, sched_add on */
	uint64_t arrival;
	uint64_t beside; /* started while that reservation was held, 0: none */
	int64_t started_us;
	struct sched_need need;
	double slots; /* what it counts for while it runs: its largest share of anything */
	int priority;
	bool expected, waiting, running, paused; /* at most one of them */
};

struct sched_limits {
	size_t running, waiting;           /* of all */
	size_t user_running, user_waiting; /* of one user; 0: as of all */
	struct sched_need most;            /* that may be promised at once; 0: not counted */
	const struct run_share *shares;    /* copied: of tenants and users by name */
	size_t nshares;
};

struct sched_ask {
	const char *owner; /* owner.h */
	int priority;
	struct sched_need need;
};

struct sched *sched_new(size_t max_running, size_t max_waiting);
void sched_free(struct sched *s);
void sched_set_limits(struct sched *s, const struct sched_limits *l, int64_t now_us);

/* Could one more job be added now?  0; -EAGAIN with the limit named; -ENOEXEC: never. */
MUST_USE int sched_room(const struct sched *s, const struct sched_ask *q, struct err *e);
/* Seconds after which a place is likely to be free for whoever got -EAGAIN, from how fast jobs
 * have started: 1 to 300. */
unsigned sched_retry_after(const struct sched *s, const char *owner, int64_t now_us);
/* It is on its way: it has its place in the queue, and does not run before sched_add. */
void sched_expect(struct sched *s, struct sched_job *j, const struct sched_ask *q, int64_t now_us);
/* Always takes the job. */
void sched_add(struct sched *s, struct sched_job *j, struct sched_session *x,
        const struct sched_ask *q, int64_t now_us);
/* It runs already, whatever the caps; or it pauses.  Its session must be idle. */
void sched_resume(struct sched *s, struct sched_job *j, struct sched_session *x,
        const struct sched_ask *q, int64_t now_us);
void sched_add_paused(struct sched *s, struct sched_job *j, struct sched_session *x,
        const struct sched_ask *q, int64_t now_us);
/* The next job that may run now (it counts as running from here), or NULL. */
struct sched_job *sched_next(struct sched *s, int64_t now_us);
/* A running job gives its slot back and keeps its session; then it waits for a slot as the first
 * of its session. */
void sched_pause(struct sched *s, struct sched_job *j, int64_t now_us);
void sched_wake(struct sched *s, struct sched_job *j, int64_t now_us);
/* It leaves, in whatever state; one that is in none is fine. */
void sched_leave(struct sched *s, struct sched_job *j, int64_t now_us);

/* Keeps the session's jobs waiting until sched_unhold.  false: one runs, or it is held already. */
MUST_USE bool sched_hold(struct sched *s, struct sched_session *x);
void sched_unhold(struct sched *s, struct sched_session *x);

size_t sched_running(const struct sched *s);
size_t sched_waiting(const struct sched *s);
/* About how many jobs start before this one, that waits, if nothing else comes. */
size_t sched_position(const struct sched *s, const struct sched_job *j);
/* Every job that waits and its position, in no order.  false where that would take too long. */
typedef void sched_each_fn(void *ctx, struct sched_job *j, size_t position);
bool sched_positions(const struct sched *s, sched_each_fn *each, void *ctx);

#endif
