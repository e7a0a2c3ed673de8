/*
 * conns.h - the connections of the HTTP server: who has how many, since when,
 * and who makes room.
 *
 * A connection is in one list at a time, oldest first: `waiting` for the headers
 * of a request, `reading` its body, `busy` with an answer, `writing` to a client
 * that does not take it, or `ending` until the client has seen the end.  The
 * heads of all but the busy ones give the nearest deadline.  When a peer has its share of all
 * connections its own longest idle one makes room for its next; when all are
 * taken, the longest idle one of all; where none is idle, one whose body has been coming for ten
 * seconds.  A stream is busy and never makes room.  To cut a connection
 * is to shut its socket down: whoever reads from it then sees its end, closes it and calls
 * conns_remove.
 */
#ifndef SUPERVISOR_CONNS_H
#define SUPERVISOR_CONNS_H

#include "base/limits.h"
#include "base/list.h"
#include "supervisor/auth.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Room for connections that are being cut while their successors arrive: as many as one turn of
 * the loop accepts. */
enum { CONNS_SPARE = 256 };

enum conn_state {
	CONN_WAITING,
	CONN_READING,
	CONN_BUSY,
	CONN_WRITING,
	CONN_ENDING,
	CONN_CUT,
	CONN_STATES
};

/* Embedded in what its owner knows of it. */
struct conn {
	struct list link; /* in conns.by_state[state] */
	enum conn_state state;
	int fd; /* borrowed: closed by whoever reads from it */
	int64_t since_ms;
	struct auth_peer peer;
	struct conns_share *share; /* borrowed: while it is there */
};

struct conns {
	struct list by_state[CONN_STATES];
	unsigned n, ncut; /* ncut: those of n that are being cut */
	/* At once; of one uid, three quarters: it cannot shut out the others. */
	unsigned most, most_of_peer;
	struct list shares; /* of struct conns_share: one for each uid that has any */
};

/* At most `most` connections. */
void conns_init(struct conns *cs, unsigned most);
/* Of LIMIT_CONNECTIONS as many as this process may have descriptors for, beside all else. */
unsigned conns_affordable(void);

/* Is there room for one more of that uid?  May cut an idle one (*ret_cut).  NULL, or why not. */
const char *conns_room(struct conns *cs, uid_t uid, bool *ret_cut);
void conns_add(struct conns *cs, struct conn *c, int fd, const struct auth_peer *peer);
/* Also into the state it has: its time begins anew. */
void conns_enter(struct conns *cs, struct conn *c, enum conn_state s);
/* Its client is to see the end now. */
void conns_cut(struct conns *cs, struct conn *c);
/* It is closed. */
void conns_remove(struct conns *cs, struct conn *c);

/* Cuts those whose time is up; milliseconds until the next one's is, -1: none. */
int64_t conns_cut_late(struct conns *cs, bool *ret_cut);
/* A refusal before there is a request: sends the text as it is; the caller closes. */
void conns_refuse(int fd, const char *reason);

#endif
