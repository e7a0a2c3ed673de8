/*
 * service.h - a child that is meant to live: started, spoken with, started
 * again when it ends.
 *
 * Each start gets a fresh socket pair; the child's end is its descriptor 3.
 * The first restart is at once, later ones back off up to SERVICE_BACKOFF_MAX_MS
 * until one has lived for SERVICE_STEADY_MS.  A child that closes its socket, sends
 * something that is no message, reads too slowly, or says nothing for too long
 * is killed: it is not alive in any way that counts.
 */
#ifndef JAIL_SERVICE_H
#define JAIL_SERVICE_H

#include "base/err.h"
#include "jail/child.h"
#include "jail/outbox.h"
#include "jail/poller.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { SERVICE_BACKOFF_MAX_MS = 5000, SERVICE_STEADY_MS = 10000 };
enum { SERVICE_FDS = 9 };

struct service;

struct service_ops {
	/* Descriptors from 4 on, borrowed, into fds[SERVICE_FDS]; how many. */
	int (*fds)(struct service *s, int *fds);
	/* False: not yet, ask again soon (NULL: always). */
	bool (*may_start)(struct service *s);
	void (*started)(struct service *s);
	/* One datagram of n bytes; fds are taken.  May kill the service, not free it. */
	void (*message)(struct service *s, void *msg, size_t n, int *fds);
	void (*ended)(struct service *s);
	/* It has said nothing for a while: asks it for a word. */
	void (*ping)(struct service *s);
};

struct service {
	/* Set by the owner before service_start. */
	const char *name;              /* static: for the log */
	const char *program;           /* borrowed: for its life */
	const char *const *argv;       /* borrowed */
	const char *const *env;        /* borrowed, besides PATH; NULL: none */
	const struct service_ops *ops; /* static */
	struct poller *poller;         /* borrowed */
	void *owner;                   /* borrowed: for its life */
	uint64_t patience_ms;          /* with one that says nothing; 0: without end.  May change */

	struct child child;
	int sock; /* owned, -1 */
	struct watch control, pidfd;
	struct outbox outbox;
	struct alarm restart, look;
	bool minded;     /* `look` is set: it has said something */
	unsigned silent; /* looks since it last did */
	int64_t started_ms;
	int64_t backoff_ms; /* of the next restart */
	bool stopping;      /* not started again */
	bool renewing;      /* its end is wanted: the next start is at once */
	struct stat file;   /* of the program, as it was started */
	int last_status;    /* wait status of the last child */
};

void service_init(struct service *s);
/* The first start: an error is the caller's; later ones are logged and tried again. */
MUST_USE int service_start(struct service *s, struct err *e);
/* The same, from the loop, errors included. */
void service_start_soon(struct service *s);
/* `child`, `sock` and what is said of them are those of a former agentboxd in this process. */
void service_resume(struct service *s);
/* What runs goes to `to`, which is not started again when it ends; `from` may be started anew. */
void service_retire(struct service *from, struct service *to);
bool service_running(const struct service *s);
/* Queues a message; fds are taken.  A service that is not running gets nothing. */
void service_send(struct service *s, void *msg, size_t n, const int *fds, int nfds);
/* Ends this child for `why` (logged); another is started. */
void service_fail(struct service *s, const char *why);
/* The program's file is not the one that runs. */
bool service_outdated(const struct service *s);
/* It was told to end: its end is no failure, and the next one is started at once. */
void service_renew(struct service *s);
void service_stop(struct service *s); /* no more restarts; SIGKILL is the caller's decision */
void service_kill(struct service *s);
void service_done(struct service *s); /* kills, reaps, closes */

#endif
