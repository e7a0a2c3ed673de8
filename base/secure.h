/*
 * secure.h - TLS over a socket that somebody else watches: what agentbox-listener
 * speaks with clients of the API, and abctl with it.
 *
 * Versions 1.2 and 1.3; no tickets, no renegotiation, no certificates of clients.  Reads and
 * writes the socket itself, without blocking.  (TLS with programs in jails, where the
 * hello was read before and certificates are made on the way: egress/tls.h.)
 */
#ifndef BASE_SECURE_H
#define BASE_SECURE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct secure_service; /* opaque: what connections share */
struct secure;         /* opaque: one connection */

/* ---- life; each returns owned, or NULL with *e ---- */

/* pem[n]: certificate, those that lead to its issuer, and the private key; borrowed. */
struct secure_service *secure_server(const char *pem, size_t n, struct err *e);
/* Trusts what `ca_file` has; NULL: what this host trusts. */
struct secure_service *secure_client(const char *ca_file, struct err *e);
/* NULL is fine; connections that are open go on. */
void secure_service_free(struct secure_service *s);
/* fd: borrowed, non-blocking.  `host`: of a client, the name or address that the certificate must
 * have; NULL: a server. */
struct secure *secure_new(struct secure_service *s, int fd, const char *host, struct err *e);
void secure_free(struct secure *x); /* NULL is fine */

/* ---- use ---- */
/* 1: done; 0: again when the socket is ready (secure_wants_write); negative with *e: failed. */
MUST_USE int secure_handshake(struct secure *x, struct err *e);
/* What the last call that was to be made again waits for; else it waits to read. */
bool secure_wants_write(const struct secure *x);
/* As recv and send: -1 with errno, EAGAIN for later; 0: the other side has ended. */
ssize_t secure_recv(struct secure *x, void *p, size_t n);
/* After EAGAIN it is called again with at least the same bytes. */
ssize_t secure_send(struct secure *x, const void *p, size_t n);
void secure_end(struct secure *x); /* nothing more comes of us */

#endif
