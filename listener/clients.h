/*
 * clients.h - clients of agentbox-listener: accepted, through TLS, then bytes both ways.
 *
 * A client gets its end of a socket pair when its handshake is done; the other goes to
 * the supervisor.  Those whose handshake takes too long, and those that do not leave
 * after all is said, are cut: when their time is over, or when others need their places.
 */
#ifndef LISTENER_CLIENTS_H
#define LISTENER_CLIENTS_H

#include "base/err.h"
#include "base/limits.h"
#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

struct secure_service;

/* More than the supervisor takes of them (three quarters of LIMIT_CONNECTIONS), which makes room
 * among those that it has: the rest are handshakes and ends, and make room here. */
enum { CLIENTS_MAX = LIMIT_CONNECTIONS };

/* What a descriptor of the epoll set is of; embedded in its owner. */
struct watched {
	void (*ready)(struct watched *w, uint32_t events);
};

struct clients {
	int epoll, outlet; /* borrowed */
	struct list open;  /* of struct client: as long as they like */
	struct list timed; /* those in a handshake or at their end, oldest first */
	struct list ready; /* through the handshake; the supervisor takes none just now */
	unsigned n, most;
	struct list dead; /* buried when a turn's events have all been given out */
};

void clients_init(struct clients *c, int epoll, int outlet);
/* Takes fd. `s`: NULL: no TLS; else borrowed: for the call, the connection holds what it needs. */
void clients_add(struct clients *c, int fd, const char *from, struct secure_service *s);
/* Is there a place for one more?  May cut the one that has been in a handshake or at its end for
 * longest. */
bool clients_room(struct clients *c);
/* Cuts those whose time is up. */
void clients_tick(struct clients *c, int64_t now_ms);
void clients_bury(struct clients *c); /* after a turn */
/* Gives the supervisor those that are ready.  False: some are still waiting for that. */
bool clients_again(struct clients *c);

#endif
