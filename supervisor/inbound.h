/*
 * inbound.h - a connection to a listener inside a session's jail.
 *
 * This process has no call to connect with.  agentboxd begins the connection in
 * the jail's network namespace, to 127.0.0.1 and where nobody listens there to
 * ::1, and only to ports that root's policy lists (`ports:`); here its outcome is
 * waited for, for a few seconds, because a jail need not answer.
 *
 * A jail has at most LIMIT_INBOUND of them, and each ends with it.
 */
#ifndef SUPERVISOR_INBOUND_H
#define SUPERVISOR_INBOUND_H

#include "base/err.h"

#include <stdint.h>

struct daemon;
struct inbound;

struct inbound_calls {
	/* Once, on the loop: fd (borrowed: until inbound_close; non-blocking) or -1 with *e. */
	void (*opened)(void *ctx, int fd, const struct err *e);
	void (*jail_gone)(
	        void *ctx); /* after `opened`, at most once: nobody lives at the other end */
	void *ctx;
};

/* Returns owned, until inbound_close; NULL with *e: -ENOENT no such session, -ESRCH no living jail,
 * -EACCES not a port of its policy, -EDQUOT too many.  What `opened` may be told besides:
 * -ECONNREFUSED nobody listens or answers. */
struct inbound *inbound_open(struct daemon *d, const char *session, unsigned port,
        const struct inbound_calls *calls, struct err *e);
/* Closes the socket; no call comes any more. */
void inbound_close(struct inbound *c);

/* As if that jail had ended: it is cut off. */
void inbound_end_jail(struct daemon *d, uint64_t jail);

/* "3000": a port.  -EINVAL. */
MUST_USE int inbound_port(const char *text, unsigned *ret, struct err *e);

#endif
