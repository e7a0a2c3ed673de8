/*
 * auth.h - who is at the other end of a connection, and what that allows.
 *
 * The peer of a Unix socket is told by the kernel (SO_PEERCRED, SO_PEERGROUPS),
 * as it was when it connected.  Root may do everything; members of the
 * socket's group may use the API; anyone else may only ask for health and
 * version, whatever the mode of the socket file says.
 */
#ifndef SUPERVISOR_AUTH_H
#define SUPERVISOR_AUTH_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

enum auth_role {
	AUTH_NONE, /* a stranger */
	AUTH_USER, /* in the socket's group */
	AUTH_ROOT,
};

struct auth_peer {
	enum auth_role role;
	uid_t uid;
	pid_t pid;
	bool remote; /* not of this socket: the listener brings it, and only a key says who it is */
};

/* The role of a peer with these ids; pure. */
enum auth_role auth_role_of(
        uid_t uid, gid_t gid, const gid_t *groups, size_t ngroups, gid_t socket_gid);

/* Asks the kernel about a connected Unix socket. */
MUST_USE int auth_peer(int fd, gid_t socket_gid, struct auth_peer *ret, struct err *e);

#endif
