/*
 * sched_private.h - struct sched and who is in it, shared by sched_turns.c (coming,
 * running, leaving) and sched_look.c (what can be asked without changing anything).
 */
#ifndef SUPERVISOR_SCHED_PRIVATE_H
#define SUPERVISOR_SCHED_PRIVATE_H

#include "base/id.h"
#include "supervisor/sched.h"
#include "supervisor/share.h"

enum { SCHED_BUCKETS = 256 /* users with work: tens to hundreds */ };

/* A tenant or a user. */
struct party {
	struct share share;
	size_t jobs; /* in whatever state; the record goes at 0 */
	size_t running, waiting, expected;
	size_t most_running, most_waiting; /* 0: as all together */
	uint64_t round;                    /* in which it had nothing that fits */
	int64_t start_us;                  /* of the latest of its jobs */
	double gap_ms;                     /* between two starts, 0: not known */
};

struct sched_tenant {
	struct list link;  /* in sched.tenants */
	struct list turn;  /* in sched.turns while one of its users is in `turns` */
	struct list turns; /* sched_user.turn */
	struct share_clock clock;
	struct party p;
	char name[NAME_MAX_LEN];
};

struct sched_user {
	struct list link;    /* in sched.users[] */
	struct list all;     /* in sched.everybody */
	struct list turn;    /* in sched_tenant.turns while it has a ready session */
	struct list ready;   /* sched_session.ready: idle with jobs, best first */
	struct list waiting; /* sched_job.mine, in order of arrival */
	struct sched_tenant *tenant;
	struct party p;
	char *owner; /* owned */
};

struct sched {
	struct sched_limits most; /* shares: owned */
	size_t running, waiting, expected, nusers;
	uint64_t arrivals, serial, rounds, reservations;
	struct sched_need promised, beside; /* to all that run; to those that began beside it: */
	size_t nbeside;
	struct sched_job *reserved; /* borrowed, or NULL */
	int64_t start_us;
	double gap_ms;
	struct share_clock clock;
	struct list users[SCHED_BUCKETS], everybody;
	struct list tenants, turns; /* the latter: sched_tenant.turn */
};

/* NULL: it has no work. */
struct sched_tenant *sched_tenant_find(const struct sched *s, const char *name);
struct sched_user *sched_user_find(const struct sched *s, const char *owner);

static inline uint64_t sched_smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#endif
