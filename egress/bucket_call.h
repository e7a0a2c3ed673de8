/*
 * bucket_call.h - one request to root's bucket, signed, and its answer.
 *
 * One attempt.  The body comes from a descriptor, piece by piece, or from memory; the answer is
 * kept up to a bound.  A request that stands still is given up, and so is one that creeps.
 * Nothing is followed, and addresses are judged as those of a policy's rules are.
 */
#ifndef EGRESS_BUCKET_CALL_H
#define EGRESS_BUCKET_CALL_H

#include "base/buf.h"
#include "base/err.h"
#include "egress/origin.h"
#include "egress/reactor.h"
#include "egress/resolve.h"
#include "policy/bucket.h"

#include <stdbool.h>
#include <stdint.h>

struct connections;
struct services;
struct transfer;

enum { CALL_ETAG = 136 };

/* Where an object is: origin, the Host field, and the encoded path. */
struct object_place {
	struct origin origin;
	char host[POLICY_HOST_MAX + 8];
	struct buf path;
};
MUST_USE int object_place(
        const struct bucket *b, const char *key, struct object_place *ret, struct err *e);
void object_place_done(struct object_place *p); /* zeroed is fine */

/* Appends a link to it that holds for link_ms. */
MUST_USE int object_link(struct services *s, const struct bucket *b, const struct object_place *at,
        int64_t now_ms, struct buf *to, struct err *e);

struct call_spec {
	const struct bucket *bucket;
	const struct object_place *at;
	const char *method, *query; /* query: "" or sorted and encoded */
	const char *payload;        /* SHA-256 of the body */
	const char *type, *sha256;  /* of the object, for what begins one; else NULL */
	const struct buf *text;     /* the body (borrowed until done), or NULL: */
	int fd;                     /* borrowed until done */
	uint64_t offset, bytes;     /* what of it; 0 with `text`: nothing */
};

/* Embedded in its owner, who keeps it until done() or call_cancel. */
struct call {
	/* Once, never from within call_begin.  e: NULL where there is an answer. */
	void (*done)(struct call *c, const struct err *e);
	int status;
	char etag[CALL_ETAG];
	struct buf answer;
	int64_t retry_after_ms;
	/* its own */
	struct services *services;
	struct lookup lookup;
	struct transfer *transfer; /* owned */
	struct timer still;
	const struct buf *text;
	int fd;
	uint64_t offset, bytes, sent;
	int64_t timeout_ms, deadline_ms;
	bool creeps;
	const struct origin *origin;
};

MUST_USE int call_begin(struct call *c, struct services *s, struct connections *connections,
        const struct call_spec *spec, struct err *e);
void call_cancel(struct call *c); /* done() will not be called; frees what it has; twice is fine */

#endif
