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

/* Namespace fd (owned) or -errno; the sockets (owned) follow enum egress_listener.  Enters the new
 * namespace for a moment: single thread only; aborts if the way back is closed. */
MUST_USE int net_make(int ret_listeners[EGRESS_LISTENERS], struct err *e);

#endif
