/*
 * proxy_conn.h - http://proxy.agentbox:3128, for programs that insist on a
 * proxy (egress.proxy).
 *
 * CONNECT and absolute targets say in words what a connection says by its
 * address: the name is looked up in the jail's table as a query would be, and
 * what follows is judged as if it had been dialled.  Nothing is allowed here
 * that is not allowed without.
 */
#ifndef EGRESS_PROXY_CONN_H
#define EGRESS_PROXY_CONN_H

struct jail;
struct place;

enum { PROXY_HEAD_MS = 10 * 1000 };

/* Where a connection goes once it is known: the jail's own judging of what was dialled.  `bytes`
 * have been read from it already. */
typedef void proxy_arrive_fn(
        struct jail *j, int fd, const struct place *p, const char *bytes, unsigned long n);

void proxy_conn_accept(struct jail *j, int fd, proxy_arrive_fn *arrive); /* takes fd */

#endif
