/*
 * library.h - what the files of libagentbox share.
 */
#ifndef CLIENT_LIBRARY_H
#define CLIENT_LIBRARY_H

#include "client/agentbox.h"
#include "client/client.h"

#define AGENTBOX_SOCKET_PATH "/run/agentbox/agentbox.sock"

struct agentbox {
	char *where, *ca_file, *key_file; /* owned; the latter two may be NULL */
	struct client_peer peer;          /* of these */
};

/* Both return the code that they have set. */
int library_failed(struct agentbox_error *to, const struct err *e);
int library_refused(struct agentbox_error *to, struct client *c); /* its status is >= 300 */

/* With the head of an answer below 300; owned, or NULL with *e. */
struct client *library_open(
        const struct agentbox *ab, const struct client_request *req, struct agentbox_error *e);

#endif
