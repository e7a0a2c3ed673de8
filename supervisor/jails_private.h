/*
 * jails_private.h - what the files of the client of agentboxd share (include jails.h before it).
 *
 *	jails.c		the socket, requests, watches
 *	jails_news.c	what agentboxd says: replies, ends, refusals
 */
#ifndef SUPERVISOR_JAILS_PRIVATE_H
#define SUPERVISOR_JAILS_PRIVATE_H

#include "proto/msg.h"
#include "supervisor/loop.h"

enum { JAILS_BUCKETS = 512 }; /* watches by jail number */

struct request {
	struct list link;   /* in jails.outbox until sent, then in jails.pending */
	struct msg_head *m; /* owned: the whole struct */
	size_t size;
	int fd;               /* owned until sent, of MAKE until the reply; or -1 */
	jails_reply_fn *done; /* may be NULL */
	void *ctx;
	struct jail_watch *watch;  /* of MAKE, or NULL */
	char policy[NAME_MAX_LEN]; /* of MAKE: the name of its index */
};

struct jails {
	struct daemon *daemon; /* borrowed */
	int sock;
	uint64_t last_req;
	struct list outbox, pending;
	struct list live;                   /* jail_live.link */
	struct list buckets[JAILS_BUCKETS]; /* jail_watch.link */
	struct op in, out;
	struct loop_hook hook;
	bool lost, told;
	bool refused; /* lost because of its policies */
	struct jails_calls calls;
	struct jails_root root;
};

static inline struct jail_make *jails_make_of(struct request *q)
{
	return (struct jail_make *)(void *)q->m;
}

/* The connection has ended, or is of no use: told by the hook. */
void jails_lose(struct jails *j);
/* Sends what waits, as far as the socket takes it. */
void jails_flush(struct jails *j);
void jails_request_free(struct request *q);

/* One datagram; fds as of a reply. */
void jails_dispatch(struct jails *j, void *m, size_t n, int fds[MSG_FDS]);

#endif
