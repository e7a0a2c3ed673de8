/*
 * net.h - the network namespace of a jail: lo, a local route for the whole
 * address space (AnyIP), and the listeners that agentbox-egress answers on.
 *
 * There is no other device, so there is no way out but through these sockets,
 * whoever runs inside.  The namespace belongs to the initial user namespace:
 * nothing in the jail may change it.
 */
#ifndef JAIL_NET_H
#define JAIL_NET_H

#include "base/err.h"
#include "proto/egress.h"

/* Listeners on the ports that a policy's rules name besides 53, 80 and 443. */
struct net_ports {
	uint32_t n;
	uint16_t port[POLICY_PORTS];
	int fd[POLICY_PORTS]; /* owned; -1 until net_make */
};

void net_ports_init(struct net_ports *p, const uint16_t *ports, uint32_t n);
void net_ports_done(struct net_ports *p);

bool net_ports_have(const struct net_ports *p, uint16_t port);

/* Namespace fd (owned) or -errno; the sockets (owned) follow enum egress_listener.  `more` says
 * which ports beside, its sockets are filled in.  Enters the new namespace for a moment: single
 * thread only; aborts if the way back is closed. */
MUST_USE int net_make(int ret_listeners[EGRESS_LISTENERS], struct net_ports *more, struct err *e);

/* A non-blocking TCP socket (owned) of that namespace whose connection to 127.0.0.1 or ::1 is
 * begun; what comes of it is not waited for.  Enters the namespace for a moment, as net_make. */
MUST_USE int net_connect(int netns, uint16_t port, bool v6, struct err *e);

#endif
