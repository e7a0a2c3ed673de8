/*
 * daemon.h - the parts of the supervisor, in one struct that main.c owns.
 *
 * API handlers get `struct daemon *` as their context and reach every part
 * through it.  All pointers are owned by main.c and valid for the process's
 * life; all of it belongs to the loop thread.
 */
#ifndef SUPERVISOR_DAEMON_H
#define SUPERVISOR_DAEMON_H

#include "base/id.h"
#include "base/list.h"
#include "supervisor/stats.h"

#include <stdbool.h>

enum { DAEMON_UNREADABLE = 16 };

struct daemon {
	struct loop *loop;
	struct policies *policies;        /* root's policies as compiled (policies.h) */
	struct harnesses *harnesses;      /* task types and agents (harnesses.h) */
	struct jails *jails;              /* client of agentboxd (jails.h) */
	struct store *store;              /* SQLite (store.h) */
	struct space *space;              /* room on the disk (space.h) */
	struct machine *machine;          /* how host and processes fare (machine.h) */
	struct apikeys *keys;             /* API keys of tenants (apikeys.h) */
	struct audit *audit;              /* who has changed what (audit.h) */
	struct frames *frames;            /* events as several followers take them */
	struct hub *hub;                  /* who waits for events (hub.h) */
	struct eventlog *log;             /* events of sessions (eventlog.h) */
	struct sessions *sessions;        /* (user, goal) pairs (sessions.h) */
	struct runs *runs;                /* runs, queued and running (runs.h) */
	struct retention_work *retention; /* what of the past goes (retention.h) */
	struct keeper *keeper;            /* agents that wait for another run (keeper.h) */
	struct webhooks *webhooks;        /* who is called about runs (webhooks.h) */
	struct traces *traces;            /* and what a collector is told of them (traces.h) */
	struct uploads *uploads;          /* artifacts in a bucket (uploads.h) */
	struct ahead *ahead;        /* and those that are started before anybody asks (ahead.h) */
	struct egress_feed *egress; /* what jails try to reach (egress_feed.h) */
	struct exec_waits *execs;   /* commands for sessions between two jails (exec_wait.h) */
	struct evict *evict;        /* how many sessions are ready, and how long (evict.h) */
	struct visits *visits;      /* requests for files of sessions (visit.h) */
	struct list inbounds;       /* connections to listeners in jails (inbound.h) */
	struct http *http;          /* the control socket's server */
	unsigned backups;           /* under way: nothing of the past goes */
	int artifacts_fd;           /* directory of kept artifacts */
	int journals_fd;            /* directory of what agents have printed (journal.h) */
	uint64_t journals_bytes;    /* those of runs that have ended */
	struct stats stats;         /* counters for metrics */
	/* Sessions whose events could not be read, the oldest to be replaced next: their clients
	 * come again and again, and the log is told once (stream.c). */
	char unreadable[DAEMON_UNREADABLE][ID_MAX];
	unsigned next_unreadable;
	int64_t spent_day; /* when old accounts were forgotten last (purses.c) */
	size_t early;      /* agents on their way to the keeper (early.h) */
	bool early_stopped;
	bool failed;   /* it ends because it cannot go on */
	bool draining; /* no new runs: the daemon is about to stop */
	bool drained;  /* no new runs: root wants none (drain.h) */
	bool renewing; /* a reload has found new programs: another supervisor comes */
};

/* Nothing is begun that would outlast what is under way. */
static inline bool daemon_closing(const struct daemon *d)
{
	return d->draining || d->drained;
}

#endif
