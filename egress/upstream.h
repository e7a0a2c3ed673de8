/*
 * upstream.h - HTTP requests to the outside, by libcurl.
 *
 * One transfer is one request and its response, streamed both ways with back-
 * pressure.  It dials only the addresses it was given, judges the address once
 * more at the moment of dialling, verifies TLS, follows nothing and knows no
 * proxy.  HTTP/1.1 only: one connection carries one exchange at a time, so a
 * jail that does not read holds up its own response and nobody else's.
 *
 * Connections are kept and shared between jails only where the credential is
 * ours and goes with each request.  Elsewhere each jail has its own: a login may
 * be one of the connection (NTLM, Negotiate), and what rides on it next is then
 * taken for the one who logged in.  Upstreams that may be private are apart in
 * either: a public one of the same name never rides on one of those.  Where root
 * named networks, a connection serves one exchange.
 *
 * Callbacks run inside libcurl: they must not free a transfer (except end(),
 * which runs outside).
 */
#ifndef EGRESS_UPSTREAM_H
#define EGRESS_UPSTREAM_H

#include "base/err.h"
#include "egress/http.h"
#include "egress/reactor.h"
#include "egress/origin.h"
#include "egress/resolve.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct upstream;    /* opaque: both pools */
struct connections; /* opaque: of one jail, kept for its next request */
struct transfer;    /* opaque */

enum { TRANSFER_PAUSE = -1, TRANSFER_ABORT = -2 };
enum { TRANSFER_CHUNKED = -1, TRANSFER_NO_BODY = -2 }; /* for body_bytes */

struct transfer_ops {
	/* The final status and the header lines of the response ("Name: value\r\n" each).
	 * Negative: the head cannot be used, the transfer ends. */
	int (*head)(void *ctx, int status, const char *lines, size_t n);
	/* Bytes of the response body: n, TRANSFER_PAUSE (they come again after
	 * transfer_resume) or TRANSFER_ABORT. */
	ssize_t (*body)(void *ctx, const char *p, size_t n);
	/* At most n bytes of the request body into p: their number, 0 at the end,
	 * TRANSFER_PAUSE or TRANSFER_ABORT. */
	ssize_t (*pull)(void *ctx, char *p, size_t n);
	/* A kept connection turned out to be closed before a byte of the response came: may the
	 * body be pulled again from its beginning? */
	bool (*rewind)(void *ctx);
	/* It is over; e is NULL when all of the response was passed on. */
	void (*end)(void *ctx, const struct err *e);
};

struct transfer_spec {
	const struct origin *origin; /* copied */
	struct reach reach;
	struct connections *own; /* borrowed, and kept until transfer_free; NULL: the shared ones */
	struct http_text method, target;
	bool fresh;                     /* on a new connection: its body could not be sent twice */
	int64_t body_bytes;             /* of the request, or TRANSFER_CHUNKED, TRANSFER_NO_BODY */
	const struct transfer_ops *ops; /* static */
	void *ctx;                      /* borrowed: until end() or transfer_free */
};

/* ---- life: before the process is confined, since the CA bundle is read here ---- */
struct upstream *upstream_new(struct reactor *r, const char *ca_file, struct err *e);
void upstream_free(struct upstream *u);

/* After all of its transfers; what is open still is closed. */
struct connections *connections_new(struct upstream *u);
void connections_free(struct connections *c); /* NULL is fine */

/* ---- transfers ---- */

/* Prepared, not started; returns owned, or NULL with *e. */
struct transfer *transfer_new(struct upstream *u, const struct transfer_spec *spec, struct err *e);
/* Adds a header; the copies are wiped when the transfer is freed. */
MUST_USE int transfer_header(
        struct transfer *t, struct http_text name, const char *prefix, struct http_text value);
MUST_USE int transfer_start(struct transfer *t, const struct lookup *addresses, struct err *e);
/* After a pause: there is room again, or there is a body again. */
void transfer_resume(struct transfer *t);
/* What may be dialled has changed: false where it is connected to what may not. */
bool transfer_narrow(struct transfer *t, const struct reach *reach);
/* On the wire so far, heads included. */
void transfer_bytes(const struct transfer *t, uint64_t *ret_in, uint64_t *ret_out);
/* What its answer's Retry-After asks for, or 0. */
int64_t transfer_retry_after_ms(const struct transfer *t);
void transfer_free(struct transfer *t); /* cancels what is under way; NULL is fine */

#endif
