/*
 * dial.h - a TCP connection to the outside: resolve, judge, connect.
 *
 * The addresses of the name are tried one after the other; each is judged once
 * more at the moment of dialling.  Nothing is resolved twice.
 */
#ifndef EGRESS_DIAL_H
#define EGRESS_DIAL_H

#include "egress/reactor.h"
#include "egress/resolve.h"

enum { DIAL_MS = 15 * 1000, DIAL_TRY_MS = 5 * 1000 };

/* Embedded in its owner, who must keep it until done() or dial_cancel. */
struct dial {
	/* fd is the owner's, or -1 with *e.  Never called from within dial_start. */
	void (*done)(struct dial *d, int fd, const struct err *e);
	struct reactor *reactor; /* borrowed */
	struct reach reach;
	struct origin to;
	struct lookup lookup;
	struct watch watch; /* of the attempt under way */
	int fd;             /* owned, of the attempt under way */
	uint32_t next;
	int64_t until_ms;
	struct err last;
};

void dial_init(
        struct dial *d, struct reactor *r, void (*done)(struct dial *, int, const struct err *));
/* A name (origin.literal: an address) and what it may lead to.  0: done() will be called, or
 * -errno with *e. */
MUST_USE int dial_start(struct dial *d, struct resolver *r, const struct origin *to,
        const struct reach *reach, struct err *e);
/* To be called every DIAL_TRY_MS: gives up the attempt that has had its time, which may end in
 * done(). */
void dial_late(struct dial *d);
void dial_cancel(struct dial *d); /* done() will not be called; idle is fine */

#endif
