/*
 * events.h - a cursor into the events of one run, which outlives connections.
 *
 * When the connection breaks before run.done a new one goes on after the last number seen, less
 * and less often, until it has been without an event for 15 s.  Nothing here waits but
 * for an accepting daemon: whoever uses it polls events_fd for input, and no longer than
 * events_wait_ms, and then takes a turn.
 */
#ifndef CLIENT_EVENTS_H
#define CLIENT_EVENTS_H

#include "base/err.h"
#include "base/json.h"
#include "client/client.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct events; /* opaque */

enum events_state {
	EVENTS_WAIT,     /* nothing yet */
	EVENTS_CAME,     /* take what came: events_next until NULL */
	EVENTS_LOST,     /* the connection broke; told once until it is in order again */
	EVENTS_OVER,     /* run.done was taken, or with live false: all there is */
	EVENTS_REFUSED,  /* by the daemon, events_answer says why */
	EVENTS_FAILED,   /* with *e: the first connection */
	EVENTS_GIVEN_UP, /* with *e: no other in 15 s */
};

/* `peer` and `run` are borrowed for its life.  from: first number wanted, 0: all.  live: wait for
 * more until run.done.  known: the daemon has answered before, so that a failure may pass.  Returns
 * owned. */
struct events *events_new(
        const struct client_peer *peer, const char *run, int64_t from, bool live, bool known);
void events_free(struct events *v); /* NULL is fine */

int events_fd(const struct events *v);      /* to poll for input; -1: only the time matters */
int events_wait_ms(const struct events *v); /* until a turn is due at the latest; -1: never */
MUST_USE enum events_state events_turn(struct events *v, struct err *e);
/* The next event that was not taken before, in order; owned.  NULL: none yet.  Its bytes stay valid
 * until the next call. */
struct json *events_next(struct events *v, const char **ret, size_t *ret_len);
int64_t events_last(const struct events *v);    /* number of the last one taken, 0: none */
struct client *events_answer(struct events *v); /* after EVENTS_REFUSED; borrowed */

/* The event in one line of a stream ("data: {...}" or bare "{...}"), or NULL for the others. */
const char *events_payload(const char *line);

#endif
