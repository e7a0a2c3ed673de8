/*
 * sched.h - who runs next.  Pure: no clock, no descriptors, no allocation but
 * one record per user with work.
 *
 * A global cap on running jobs.  Users take turns; within a user the highest
 * priority first, then in order of arrival; a session runs one job at a time
 * and its jobs in order, and a job whose session is busy takes no slot and does
 * not stand in anyone's way.
 */
#ifndef SUPERVISOR_SCHED_H
#define SUPERVISOR_SCHED_H

#include "base/err.h"
#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sched;
struct sched_user;

/* Embedded in a session. */
struct sched_session {
	struct list jobs;        /* waiting jobs (sched_job.link), in order */
	struct list ready;       /* link in sched_user.ready while idle and with jobs */
	bool busy;               /* one of its jobs runs */
	bool held;               /* by sched_hold: none of its jobs may run */
	struct sched_user *user; /* borrowed while it has jobs */
};
void sched_session_init(struct sched_session *s);

/* Embedded in a run. */
struct sched_job {
	struct list link; /* in sched_session.jobs while waiting */
	struct sched_session *session;
	uint64_t arrival;
	int priority;
	bool waiting, running;
};

struct sched *sched_new(size_t max_running, size_t max_waiting);
void sched_free(struct sched *s);
void sched_limits(struct sched *s, size_t max_running, size_t max_waiting);

/* Could one more job be added now?  0, or -EAGAIN with the limit named. */
MUST_USE int sched_room(const struct sched *s, struct err *e);
/* Always takes the job; *ret_position: waiting jobs in front of it, over all users. */
void sched_add(struct sched *s, struct sched_job *j, struct sched_session *x, const char *user,
        int priority, size_t *ret_position);
/* It runs already, whatever the cap: its session must be idle. */
void sched_resume(struct sched *s, struct sched_job *j, struct sched_session *x, const char *user);
/* The next job that may run now (it counts as running from here), or NULL. */
struct sched_job *sched_next(struct sched *s);
/* A waiting or running job leaves; one that is neither is fine. */
void sched_leave(struct sched *s, struct sched_job *j);

/* Keeps the session's jobs waiting until sched_unhold.  false: one runs, or it is held already. */
MUST_USE bool sched_hold(struct sched *s, struct sched_session *x);
void sched_unhold(struct sched *s, struct sched_session *x);

size_t sched_running(const struct sched *s);
size_t sched_waiting(const struct sched *s);

#endif
