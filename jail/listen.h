/*
 * listen.h - the control socket: taken from a service manager, or made.
 */
#ifndef JAIL_LISTEN_H
#define JAIL_LISTEN_H

#include "base/err.h"

#include <sys/types.h>
#include <time.h>

struct listener {
	int fd;     /* owned, listening, O_NONBLOCK */
	char *path; /* owned: to be removed at the end; NULL: the manager's */
	/* Of the path as we made it; the time too, because inode numbers are used again. */
	ino_t ino;
	dev_t dev;
	struct timespec ctime;
};
#define LISTENER_NONE                                                                              \
	{                                                                                          \
		.fd = -1, .path = NULL                                                             \
	}

/* Socket activation (LISTEN_PID, LISTEN_FDS): exactly one listening Unix stream socket, as fd 3.
 * 1: taken, 0: none was given.  Before the environment is wiped and fds are opened. */
MUST_USE int listen_inherited(struct listener *ret, struct err *e);

/* Makes the socket, mode 0660, group `gid`, and its directory where that is missing.  What a dead
 * daemon left is replaced; -EADDRINUSE when somebody answers on it, -EEXIST when it is no socket.
 */
MUST_USE int listen_make(struct listener *ret, const char *path, gid_t gid, struct err *e);

/* Closes; removes the path if it is still ours. */
void listen_close(struct listener *l);

#endif
