/*
 * serve.h - agentbox-listener's work: accepting clients of TCP, TLS, and handing each
 * to the supervisor as a local socket.
 *
 * It reads nothing of HTTP and knows no keys.  What it has is the private keys of
 * certificates, and strangers' bytes before TLS: that is why it is neither the supervisor
 * (which parses, and holds no secret) nor egress (which holds others').  It may open no
 * socket but pairs and connect nothing.
 */
#ifndef LISTENER_SERVE_H
#define LISTENER_SERVE_H

#include "base/err.h"

#include <sys/types.h>

struct serve_options {
	int control, outlet; /* borrowed */
	uid_t uid;
	gid_t gid;
};

/* Gives up root, then serves until agentboxd closes the control socket. */
MUST_USE int serve_run(const struct serve_options *o, struct err *e);

#endif
