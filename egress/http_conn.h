/*
 * http_conn.h - a connection of a jail that speaks HTTP, in the open or in TLS that
 * ends here: heads in, answers out.
 *
 *	HEAD ----> EXCHANGE ----> HEAD          (keep-alive)
 *	  |            |
 *	  `--> FLUSH <-'                        (refused, failed or to be closed)
 *	         `---> LINGER                   (until the jail has read the answer)
 *
 * One exchange at a time; pipelined requests wait in `in` or in the socket.  A
 * jail that closes cancels its exchange.
 */
#ifndef EGRESS_HTTP_CONN_H
#define EGRESS_HTTP_CONN_H

#include "base/buf.h"
#include "egress/address.h"
#include "egress/client.h"
#include "egress/exchange.h"
#include "egress/jails.h"
#include "egress/place.h"
#include "egress/report.h"

#include <stdbool.h>
#include <stdint.h>

struct tls;

enum http_state { HTTP_HEAD, HTTP_EXCHANGE, HTTP_FLUSH, HTTP_LINGER };

enum {
	HTTP_HEAD_MS = 30 * 1000,  /* a head that has begun */
	HTTP_IDLE_MS = 120 * 1000, /* between two requests; SDKs keep theirs for a minute */
	HTTP_LINGER_MS = 2000,
	HTTP_LINGER_BYTES = 4 << 20, /* of a body nobody wants, read so that the answer arrives */
};

struct http_conn {
	struct client client;
	enum http_state state;
	struct buf in, out;
	size_t searched;                /* of `in`, for the end of the head */
	size_t discarded;               /* in LINGER */
	char address[ADDRESS_TEXT_MAX]; /* that was dialled */
	struct place place;
	struct tls *tls;   /* owned; NULL: plain HTTP */
	bool used;         /* a request was answered: its jail knows that it may be closed */
	struct exchange x; /* in EXCHANGE */
};

/* Takes fd; bytes[n] have been read from it already (n may be 0). */
void http_conn_accept(struct jail *j, int fd, const struct place *p, const char *bytes, size_t n);

/* The same after a handshake.  Takes fd and `tls`. */
void http_conn_accept_tls(struct jail *j, int fd, const struct place *p, struct tls *tls);

/* ---- for exchange.c ---- */

/* A whole answer of our own, after which the connection is closed.  The reason becomes an event
 * and the text of the answer's JSON.  `what`: host, port, remedy and rule are the caller's. */
void http_conn_refuse(struct http_conn *c, int status, struct report_of what, const char *reason);
/* Sends what is in `out` as far as the socket takes it; may end the connection. */
void http_conn_flush(struct http_conn *c);
/* The exchange is over and `out` holds its end: next request, or close. */
void http_conn_next(struct http_conn *c, bool keep);
/* Tells the loop what this connection waits for now. */
void http_conn_interest(struct http_conn *c);

#endif
