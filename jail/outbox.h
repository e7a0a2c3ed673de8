/*
 * outbox.h - datagrams to one of our children that may be slow to read.
 *
 * agentboxd never blocks on a child: what the socket does not take waits here,
 * in order, with its descriptors.  A child that lets OUTBOX_MAX messages pile
 * up is not alive any more; the owner ends it.
 */
#ifndef JAIL_OUTBOX_H
#define JAIL_OUTBOX_H

#include "base/err.h"
#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>

/* Every live jail may be told of once, in both directions, with room to spare. */
enum { OUTBOX_MAX = 16384 };

struct outbox {
	int sock;         /* borrowed: for the life of the outbox */
	unsigned waiting; /* messages in the list */
	struct list list; /* of struct parcel, oldest first */
};

void outbox_init(struct outbox *o, int sock);
/* With all that waits; `from` is as after outbox_done. */
void outbox_move(struct outbox *from, struct outbox *to);
void outbox_done(struct outbox *o); /* drops what waits, closes its fds */

/* `m` begins with struct msg_head and is copied; fds are taken (also on failure).
 * 0, -ENOBUFS beyond OUTBOX_MAX, or the socket's error (-EPIPE: the child is gone). */
MUST_USE int outbox_send(struct outbox *o, void *m, size_t size, const int *fds, int nfds);
/* After EPOLLOUT.  0, or the socket's error. */
MUST_USE int outbox_flush(struct outbox *o);
static inline bool outbox_waits(const struct outbox *o)
{
	return o->waiting > 0;
}

#endif
