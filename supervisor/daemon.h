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
	struct policies *policies;   /* root's policies as compiled (policies.h) */
	struct harnesses *harnesses; /* task types and agents (harnesses.h) */
	struct jails *jails;         /* client of agentboxd (jails.h) */
	struct store *store;         /* SQLite (store.h) */
	struct hub *hub;             /* who waits for events (hub.h) */
	struct eventlog *log;        /* events of sessions (eventlog.h) */
	struct sessions *sessions;   /* (user, goal) pairs (sessions.h) */
	struct runs *runs;           /* runs, queued and running (runs.h) */
	struct egress_feed *egress;  /* what jails try to reach (egress_feed.h) */
	struct exec_waits *execs;    /* commands for sessions between two jails (exec_wait.h) */
	struct list inbounds;        /* connections to listeners in jails (inbound.h) */
	struct http *http;           /* the control socket's server */
	int artifacts_fd;            /* directory of kept artifacts */
	int journals_fd;             /* directory of what running agents have said */
	struct stats stats;          /* counters for metrics */
	/* Sessions whose events could not be read, the oldest to be replaced next: their clients
	 * come again and again, and the log is told once (stream.c). */
	char unreadable[DAEMON_UNREADABLE][ID_MAX];
	unsigned next_unreadable;
	int64_t spent_day; /* when old accounts were forgotten last (purses.c) */
	bool failed;       /* it ends because it cannot go on */
	bool draining;     /* no new runs: the daemon is about to stop */
	bool renewing;     /* a reload has found new programs: another supervisor comes */
};

#endif
