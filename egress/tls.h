/*
 * tls.h - TLS with a program in a jail, egress as the server.
 *
 * For names whose TLS is terminated.  Begins with the bytes of the hello that
 * have been read already; then it reads and writes the socket itself, without
 * blocking, and no further than it was asked to: what it has not given out is
 * still in the socket, so that readiness means what it means without TLS.
 * Versions 1.2 and 1.3, HTTP/1.1 inside; no tickets, no early data, no
 * renegotiation, no certificates of clients.
 */
#ifndef EGRESS_TLS_H
#define EGRESS_TLS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct certs;
struct tls;         /* opaque: one connection */
struct tls_service; /* opaque: what all of them share */

/* One tls_recv gives at least one whole record where there is room for it. */
enum { TLS_RECORD = 16 << 10 };

enum tls_step {
	TLS_DONE,
	TLS_READ,  /* again when the socket can be read */
	TLS_WRITE, /* or written */
	TLS_FAILED,
	TLS_DISTRUSTED, /* failed: the program does not take the certificate, or went away over it
	                 */
};

/* ---- life: the service before the process is confined ---- */
struct tls_service *tls_service_new(struct err *e);
void tls_service_free(struct tls_service *s); /* NULL is fine */

/* fd is borrowed: until tls_free.  `name`: what the hello asked for, lower case; hello[n] is
 * copied. Returns owned, or NULL with *e. */
struct tls *tls_new(struct tls_service *s, struct certs *c, int fd, const char *name,
        const uint8_t *hello, size_t n, struct err *e);
void tls_free(struct tls *t); /* NULL is fine */

/* ---- use ---- */
enum tls_step tls_handshake(struct tls *t, struct err *e); /* e: of the last two steps */
const char *tls_name(const struct tls *t);
/* As recv and send: -1 with errno, EAGAIN for later; 0: the other side has ended.  With less room
 * than TLS_RECORD a part of what came may be left where epoll does not see it. */
ssize_t tls_recv(struct tls *t, void *p, size_t n);
/* After EAGAIN it is called again with at least the same bytes. */
ssize_t tls_send(struct tls *t, const void *p, size_t n);
void tls_end(struct tls *t); /* says that nothing more comes, as far as the socket takes it */

#endif
