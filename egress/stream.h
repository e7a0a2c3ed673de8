/*
 * stream.h - a connection of a jail that is passed on as it is: TLS by its
 * server name, raw bytes by the rule of what was dialled.
 *
 *	HELLO ----> DIAL ----> RELAY		(tls)
 *	  `----> shake.h			(tls that is terminated)
 *	            DIAL ----> RELAY		(raw)
 *
 * What may not go on is reset, with an event that says why.  In HELLO nothing
 * has been dialled; the bytes read there are sent on unchanged.  RELAY moves
 * bytes by splice(2) and ends when both directions have.
 */
#ifndef EGRESS_STREAM_H
#define EGRESS_STREAM_H

#include "egress/client.h"
#include "egress/dial.h"
#include "egress/pipes.h"
#include "egress/place.h"
#include "policy/advice.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stdint.h>

enum stream_state { STREAM_HELLO, STREAM_DIAL, STREAM_RELAY };

enum {
	/* A hello follows the handshake of TCP at once; on loopback that is microseconds. */
	STREAM_HELLO_MS = 2000,
	STREAM_IDLE_MS = 15 * 60 * 1000, /* no byte either way */
	STREAM_TURN = 1 << 20,           /* bytes of one direction before others have their turn */
};

struct stream_dial;

/* One direction of a relay. */
struct flow {
	struct splice_pipe pipe;
	bool eof;  /* read */
	bool shut; /* and passed on */
	uint64_t bytes;
};

struct stream {
	struct client client;
	enum stream_state state;
	struct place place;
	char host[POLICY_HOST_MAX]; /* the name, or the address as text */
	int rule;                   /* of the jail's policy as it is now */
	bool waiting;               /* for the rate of its rule */
	enum egress_protocol spoken;
	struct stream_dial *dial; /* owned, until there is a connection */
	uint8_t *hello;           /* owned, until it was sent */
	size_t nhello;
	struct watch outside;
	int fd; /* owned: outside; -1 until RELAY */
	struct flow out, in;
};

/* tls: its name is in the hello, and may turn out to be refused. */
void stream_accept_tls(struct jail *j, int fd, const struct place *p);
/* By this rule, to what was dialled. */
void stream_accept_raw(struct jail *j, int fd, const struct place *p, int rule);

#endif
