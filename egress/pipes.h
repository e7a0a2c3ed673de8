/*
 * pipes.h - pipes for splice(2), borrowed only while bytes are in them.
 *
 * A relay moves bytes from socket to pipe to socket.  A pipe is empty again
 * nearly always, so a few serve thousands of connections, and a connection that
 * is idle owns its two sockets and nothing else.
 */
#ifndef EGRESS_PIPES_H
#define EGRESS_PIPES_H

#include "base/err.h"

#include <stddef.h>

enum {
	PIPES_KEPT = 32,
	PIPE_BYTES =
	        256 << 10, /* asked for; what the kernel gives is fine (fs.pipe-user-pages-soft) */
};

struct splice_pipe {
	int in, out; /* -1: none */
	size_t held; /* bytes inside */
};

struct pipes {
	struct splice_pipe kept[PIPES_KEPT];
	size_t n;
};

/* An empty one.  0 or -errno. */
MUST_USE int pipes_take(struct pipes *p, struct splice_pipe *ret);
/* Kept for the next when it is empty, else closed.  *it is none afterwards; none is fine. */
void pipes_give(struct pipes *p, struct splice_pipe *it);
void pipes_done(struct pipes *p);

#endif
