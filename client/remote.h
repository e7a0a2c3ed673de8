/*
 * remote.h - the API over TCP, as if it were a local socket.
 *
 * With https a thread of ours speaks TLS and passes the bytes on (base/bridge.h), so that
 * everything else reads, polls and hands on one plain descriptor.  The thread takes no signals and
 * ends when either side has.
 */
#ifndef CLIENT_REMOTE_H
#define CLIENT_REMOTE_H

#include "base/err.h"

/* Returns owned: connected and, with https, whom the certificate says; or -errno with *e. */
MUST_USE int remote_open(const char *url, const char *ca_file, struct err *e);

struct remote_place {
	char host[256], port[8];
	int tls;
};
/* Plain http is for this host alone: the key would go over the wire as it is.  Pure. */
MUST_USE int remote_parse(const char *url, struct remote_place *ret, struct err *e);

#endif
