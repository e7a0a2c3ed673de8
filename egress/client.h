/*
 * client.h - one TCP connection accepted from a jail, whatever it speaks.
 *
 * Embedded first in http_conn, stream and dns_conn.  Ends at once (socket
 * closed, off its jail's list) and is freed at the end of the loop's turn by
 * its kind's free(); until then its callbacks find `ended` set.
 */
#ifndef EGRESS_CLIENT_H
#define EGRESS_CLIENT_H

#include "base/list.h"
#include "egress/reactor.h"

#include <stdbool.h>
#include <stdint.h>

struct client;
struct jail;

struct client_kind {
	void (*ready)(struct client *c, uint32_t events);
	void (*late)(struct client *c); /* the deadline has passed */
	/* Another egress has the listeners.  `cut` NULL: what is under way goes on, nothing new is
	 * begun; else it ends now and this is why.  NULL: it is short enough to be left alone. */
	void (*leave)(struct client *c, const char *cut);
	void (*free)(struct client *c);   /* after the end: what it owns, and itself */
	void (*follow)(struct client *c); /* the jail's policy has changed; may be NULL */
};

struct client {
	const struct client_kind *kind; /* static */
	struct jail *jail;              /* outlives its clients */
	struct reactor *reactor;        /* borrowed: process */
	struct list link;               /* in jail.clients */
	struct watch watch;
	struct corpse corpse;
	int fd; /* owned */
	bool ended;
	int64_t deadline_ms;
};

/* Takes fd.  On failure everything is freed by kind->free at the end of the turn. */
void client_begin(struct client *c, const struct client_kind *kind, struct jail *j, int fd,
        uint32_t events, int64_t in_ms);
void client_deadline(struct client *c, int64_t in_ms);
/* Ends it without closing: the descriptor is the caller's; -1 when it had ended. */
int client_release(struct client *c);
/* `reset`: with RST, so that the peer sees an error and not an empty answer. */
void client_end(struct client *c, bool reset);

#endif
