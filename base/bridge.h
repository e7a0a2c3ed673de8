/*
 * bridge.h - bytes both ways between a socket of TCP, with or without TLS, and a local one.
 *
 * Whoever owns it watches both descriptors for what bridge_events says, level
 * triggered, and calls bridge_move when one is ready.  Each direction has its own end: one that
 * has ended is passed on as such, and the other goes on.
 */
#ifndef BASE_BRIDGE_H
#define BASE_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct secure;

enum { BRIDGE_BYTES = 16 << 10 /* a record of TLS */ };

struct bridge_way {
	char p[BRIDGE_BYTES];
	size_t at, len; /* not passed on yet: p[at..len) */
	bool ended;     /* nothing more comes in */
	bool passed;    /* and that was passed on */
};

struct bridge {
	int remote, local;         /* borrowed, non-blocking */
	struct secure *secure;     /* borrowed; NULL: plain */
	struct bridge_way in, out; /* from remote to local, and back */
	bool deaf;                 /* local takes nothing more: what comes in is dropped */
};

/* True: go on; false: it is over, both ways or by an error. */
bool bridge_move(struct bridge *b);
/* What to wait for: POLLIN, POLLOUT; 0: nothing but the end. */
void bridge_events(const struct bridge *b, short *ret_remote, short *ret_local);
/* Everything that came from the local side has gone out, and nothing more will come. */
bool bridge_answered(const struct bridge *b);

#endif
