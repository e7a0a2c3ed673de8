/*
 * resolve.h - the addresses of an upstream, outside, and only good ones.
 *
 * c-ares over the host's resolvers, with /etc/hosts as it was at the start (the
 * process cannot open files later).  Every address of an answer is judged; if
 * one is not public the whole answer is refused, because a name that mixes
 * them is being turned against the host (DNS rebinding).  What root named besides
 * public addresses (struct reach) is fine.  Answers are kept for their own time to
 * live, at most a minute.
 */
#ifndef EGRESS_RESOLVE_H
#define EGRESS_RESOLVE_H

#include "base/err.h"
#include "egress/address.h"
#include "egress/reactor.h"
#include "egress/origin.h"

#include <stdbool.h>
#include <stdint.h>

struct resolver; /* opaque */

enum {
	LOOKUP_ADDRESSES = 8, /* more of one name do not help a dial */
	LOOKUP_TEXT = LOOKUP_ADDRESSES * 48,
};

/* Embedded in its owner, who must keep it until done() or lookup_cancel. */
struct lookup {
	void (*done)(struct lookup *l, const struct err *e); /* e: NULL when addresses are there */
	struct query *query; /* in the resolver's hands; NULL when not */
	uint32_t n;          /* of addresses, at least one when it is done; IPv4 mapped */
	uint8_t addresses[LOOKUP_ADDRESSES][16];
};

/* Reads the host's resolver configuration: before the process is confined. */
struct resolver *resolver_new(struct reactor *r, struct err *e);
void resolver_free(struct resolver *r);

/* 1: addresses are in `l`, done() will not be called; 0: done() will be; or -errno with *e. */
MUST_USE int lookup_start(struct resolver *r, const struct origin *o, const struct reach *reach,
        struct lookup *l, struct err *e);
/* "192.0.2.1,[2001:db8::1]" */
void lookup_text(const struct lookup *l, char to[LOOKUP_TEXT]);
void lookup_cancel(struct lookup *l); /* done() will not be called; idle is fine */

#endif
