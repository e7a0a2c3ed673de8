/*
 * listener.h - agentboxd <-> agentbox-listener, and what that gives the supervisor.
 *
 * agentboxd binds the addresses of root's `listen` and hands out the sockets, with
 * certificate and private key as PEM in a memfd each.  The listener accepts, speaks TLS,
 * and gives the supervisor one end of a socket pair for each client, over a SEQPACKET
 * pair of their own that agentboxd keeps: whatever of the two starts anew finds it.
 */
#ifndef PROTO_LISTENER_H
#define PROTO_LISTENER_H

#include "policy/listen.h"
#include "proto/msg.h"

#include <stdint.h>

enum {
	LISTENER_PEM_MAX = 256 << 10,
	LISTENER_WHY = 200,
	/* In the listener. */
	LISTENER_OUTLET = 4, /* of the pair: what follows CHILD_CONTROL */
};

enum listener_msg {
	LISTENER_SET = 1,     /* -> struct listener_set; fds: the socket, and with TLS the PEM */
	LISTENER_ALL,         /* -> struct listener_simple: those since the last ALL are all */
	LISTENER_TOLD = 100,  /* <- struct listener_told: how a SET went */
	LISTENER_CLIENT = 200 /* -> the supervisor, struct listener_client; fd: the client's */
};

struct listener_simple {
	struct msg_head head;
};

struct listener_set {
	struct msg_head head;
	uint32_t tls; /* 0 or 1 */
	char address[LISTEN_TEXT];
	uint32_t pad;
};

struct listener_told {
	struct msg_head head;
	char address[LISTEN_TEXT];
	char why[LISTENER_WHY]; /* "": it is served */
};

struct listener_client {
	struct msg_head head;
	char from[LISTEN_TEXT]; /* its address, for the log */
};

#endif
