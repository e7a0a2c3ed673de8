/*
 * relay.h - bytes between two connected sockets, both ways, until both are at
 * their end.
 *
 * Each direction has one buffer of fixed size and is either reading or writing,
 * so that a side that does not read stops the other one from being read.  The
 * end of one direction is passed on as such; the other goes on.  The sockets are
 * non-blocking and the caller's: `over` is called once, on the loop, with nothing
 * of the relay in the kernel's hands, and the caller then closes them.
 */
#ifndef SUPERVISOR_RELAY_H
#define SUPERVISOR_RELAY_H

#include "supervisor/loop.h"

#include <stddef.h>

struct relay;

enum { RELAY_BYTES = 16 << 10 };

/* `client` is the side whose leaving ends everything; `from_client`
 * and `from_server` (borrowed: for the call) are what was read from them already. */
struct relay_spec {
	struct loop *loop;
	int client, server; /* borrowed: until `over` */
	const void *from_client, *from_server;
	size_t nclient, nserver;
	void (*over)(void *ctx);
	void *ctx;
};
/* Frees itself after `over`. */
struct relay *relay_new(const struct relay_spec *spec);
/* Nobody writes at the server's side any more: what is on its way may still be read for a while. */
void relay_expire(struct relay *r);
void relay_cut(struct relay *r); /* now; `over` comes when nothing is in flight */

#endif
