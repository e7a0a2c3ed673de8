/*
 * jails.h - the jails of this daemon, from launch to release.
 *
 *	LIVE --kill or PID 1's end--> DYING --no process left--> DEAD --release--> (slot free)
 *
 * The table watches PID 1's socket, its pidfd and its cgroup, and tells of two
 * things: a program ended, the jail is gone.  A dead jail keeps its files
 * reachable for workers, its uid block and its cgroup until it is released.
 * With `orphaned` nobody is left to release it: then it goes by itself.
 *
 * A jail made for a run outlives the supervisor that asked for it: the ends of
 * its program's stdio are kept here too, and what became of that program,
 * until the next supervisor takes it up or releases it.
 */
#ifndef JAIL_JAILS_H
#define JAIL_JAILS_H

#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/list.h"
#include "jail/disks.h"
#include "jail/launch.h"
#include "jail/poller.h"
#include "jail/reaper.h"
#include "proto/jail.h"

#include <stdbool.h>
#include <stdint.h>

enum jails_state { JAILS_LIVE, JAILS_DYING, JAILS_DEAD };

struct jail {
	uint64_t id;         /* never 0, never used twice; its low bits are the slot */
	struct jails *table; /* borrowed: outlives its jails */
	enum jails_state state;
	bool killed; /* we were asked to */
	bool orphaned;
	bool settling;             /* nothing lives in it; egress has still to say what went out */
	bool reaped;               /* PID 1 was collected */
	struct launched l;         /* owned */
	uint32_t base;             /* first host id; its lease ends with the jail */
	char policy[NAME_MAX_LEN]; /* by name: indices change with a reload */
	uint32_t flags;            /* enum jail_make_flag */
	char session[ID_MAX];      /* "" without one */
	char run[ID_MAX];          /* "": it ends with its supervisor */
	uint64_t program;          /* number of the run's own program, 0: not started yet */
	struct launch_stdio kept;  /* owned: of that program, for the next supervisor */
	bool resting;              /* its run is over, the program waits for another */
	bool claimed;              /* and had others before this one, or none at first */
	bool rest_waits;           /* jails_news.rested is to come */
	uint64_t rest_req;         /* the request that it answers */
	bool exited, gone;         /* these were told: */
	struct init_exited how;    /* of that program */
	struct jail_gone end;
	int64_t made_ms;       /* monotonic */
	uint32_t limits_met;   /* bits of enum jail_limit_kind that were told */
	uint64_t execs, exits; /* programs started, ends told of */
	uint64_t untaken;      /* the first that PID 1 may not have been told of yet, 0: none */
	int64_t untaken_ms;    /* monotonic: since when */
	struct alarm take;     /* looks whether it has */
	uint64_t egress_bytes;
	char user[ACCOUNT_ID];   /* "" or whose account it spends from */
	struct budget budget;    /* narrower than the policy's, of the run */
	struct outlets outlets;  /* likewise: what goes out of it, and which secrets come in */
	struct veil veil;        /* of the secrets that came in */
	struct jail_keeps keeps; /* what its program cannot write */
	struct tokens tokens;    /* what it has used: */
	struct spending spent;
	bool has_egress;      /* egress was told of it */
	uint32_t events_lost; /* of egress, that were not told */
	struct watch control, pidfd, events;
	struct alarm recheck; /* cgroup.events can be late or missing */
	struct disk disk;     /* owned: what holds workspace and home */
	struct alarm look;    /* at the disk */
	struct job ballast;   /* brings a limit closer that could not be set at once */
	struct watch ballast_ended;
	struct list workers; /* of struct jails_worker */
	unsigned nworkers;
	bool leaving; /* free once those are gone */
};

/* What the table tells, with the loop's stack above: the jail may not be released inside. */
struct jails_news {
	void (*exited)(void *ctx, struct jail *j, const struct init_exited *m);
	/* Nothing lives in it.  True: jails_settled is to come before it is told gone. */
	bool (*settling)(void *ctx, struct jail *j);
	void (*gone)(void *ctx, struct jail *j, const struct jail_gone *m);
	/* All that went out of a jail that rests is told. */
	void (*rested)(void *ctx, struct jail *j);
	/* A limit of the disk was met for the first time. */
	void (*limit)(void *ctx, struct jail *j, enum jail_limit_kind kind, uint64_t value);
	/* After the last descriptor of it is closed: the uid block is free. */
	void (*released)(void *ctx, uint32_t base);
};

struct jails {
	struct poller *poller; /* borrowed, as the next */
	struct reaper *reaper;
	const struct jails_news *news; /* static */
	void *ctx;
	struct jail *slots[LIMIT_JAILS]; /* owned */
	unsigned count;
	uint64_t serial;
	unsigned search; /* slot where the next search begins */
};

/* ---- life ---- */
void jails_init(struct jails *t, struct poller *p, struct reaper *r, const struct jails_news *news,
        void *ctx);
void jails_done(struct jails *t); /* kills and releases what is left */

/* Takes `l` and `k` (also on failure: then it is ended) and watches it. */
MUST_USE int jails_add(
        struct jails *t, struct launched *l, struct disk *k, struct jail **ret, struct err *e);
/* For what a former agentboxd in this process had: an empty one; then, filled in, it is taken into
 * the table and watched.  One that cannot be watched is ended. */
struct jail *jails_blank(struct jails *t);
void jails_resume(struct jail *j);
bool jails_full(const struct jails *t);

/* ---- use: -ENOENT for a number that is none of ours ---- */
MUST_USE int jails_find(struct jails *t, uint64_t id, struct jail **ret, struct err *e);
/* Not yet dead and using this session; NULL: none. */
struct jail *jails_with_session(struct jails *t, const char *session);
/* Fills in what is counted here and not by the cgroup. */
void jails_count(const struct jail *j, struct jail_resources *r);
/* All of that, what the cgroup counts, and the memory it holds now. */
void jails_use(const struct jail *j, struct jail_reply *ret);
/* Bytes that living jails may still write, by the limits of their disks. */
uint64_t jails_promised(const struct jails *t);
/* PID 1 was asked to start one more program.  If it does not take the request the end of that
 * program is told after a while (ETIMEDOUT). */
void jails_asked(struct jail *j);
void jails_kill(struct jail *j);
/* Its run is over: from now on nothing goes in or out.  True: jails_news.rested tells when all that
 * did is told. */
MUST_USE bool jails_rest(struct jail *j, uint64_t req);
/* Another run's: what counts by the run begins anew. */
void jails_claim(struct jail *j, const struct jail_claim *m);
/* Nothing more will be heard of that jail from egress. */
void jails_settled(struct jails *t, uint64_t id);
void jails_settle_all(struct jails *t); /* egress itself is gone */
/* Nobody was told of it: it is killed and goes by itself. */
void jails_discard(struct jail *j);
/* The worker's socket (owned), or -errno. */
MUST_USE int jails_worker(struct jail *j, int worker_memfd, struct err *e);
/* Workers and the like, beside what runs in the jails. */
bool jails_have_children(const struct jails *t);
void jails_kill_children(struct jails *t); /* nobody speaks to them any more */
/* -EBUSY while it lives. */
MUST_USE int jails_release(struct jail *j, struct err *e);
/* The program just started is the run's: keeps duplicates of the ends of its stdio.  -EMFILE... */
MUST_USE int jails_keep_program(struct jail *j, const struct launch_stdio *s, struct err *e);
/* Nobody will take them up: every jail, or (`all` false) those that are no run's, is killed and
 * goes by itself; in the others what was started besides the run's program is killed.  How many
 * are left for the next supervisor. */
unsigned jails_orphan(struct jails *t, bool all);
unsigned jails_orphans(const struct jails *t); /* on their way out */

#endif
