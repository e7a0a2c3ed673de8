/*
 * remote.h - the addresses of TCP that root's `listen` names: bound here, for
 * agentbox-listener (proto/listener.h), and the way from that to the supervisor.
 *
 * A socket stays bound while the configuration has its address, whatever becomes of
 * the listener or of agentboxd's own program: clients wait in its backlog.
 */
#ifndef JAIL_REMOTE_H
#define JAIL_REMOTE_H

#include "base/err.h"
#include "policy/policy.h"

struct remote {
	int fd[LISTENS]; /* owned; -1: unused */
	char address[LISTENS][LISTEN_TEXT];
	/* SEQPACKET: the listener gives clients to the first, supervisors take them from the
	 * second. Owned. */
	int pair[2];
};

void remote_init(struct remote *r);
void remote_done(struct remote *r);
MUST_USE int remote_pair(struct remote *r, struct err *e); /* if there is none */

/* Binds what is new and closes what the configuration has no more.  -errno names the address; what
 * could be bound is. */
MUST_USE int remote_bind(struct remote *r, const struct daemon_config *c, struct err *e);
/* The socket of an entry (borrowed), or -1. */
int remote_socket(const struct remote *r, const struct listen_at *l);
/* Certificate and key of an entry with TLS, as a sealed memfd (owned); -errno names the file. */
MUST_USE int remote_pem(const struct listen_at *l, struct err *e);

#endif
