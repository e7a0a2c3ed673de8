/*
 * tls_conn.h - connections to port 443: named in an event, then reset.
 *
 * No TLS goes out of a jail at this stage, so the only use of the ClientHello
 * is to tell which host was wanted.
 */
#ifndef EGRESS_TLS_CONN_H
#define EGRESS_TLS_CONN_H

struct jail;

void tls_conn_accept(struct jail *j, int fd); /* takes fd */

#endif
