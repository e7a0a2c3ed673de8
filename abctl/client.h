/*
 * client.h - one request to the daemon over its Unix socket.
 *
 * A client is one connection and one request; the next request makes a new
 * one.  A library for all of HTTP would bring TLS, proxies and name resolution
 * for one local socket, so this is what is needed and no more: send, read the
 * head, then the body whole, by lines, or - after 101 - the bare socket.
 */
#ifndef ABCTL_CLIENT_H
#define ABCTL_CLIENT_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client; /* opaque */

struct client_request {
	const char *method, *path;
	const char *accept; /* NULL: application/json */
	const char *body;   /* JSON, or NULL */
	size_t body_len;
	const char *upgrade;   /* protocol asked for, or NULL */
	int64_t last_event_id; /* < 1: not sent */
};

/* ---- life ---- */

/* Connects and sends the whole request.  Returns owned, or NULL with *e: then e->code tells
 * "nobody there" (-ENOENT, -ECONNREFUSED, -EACCES) from the rest, and the text says what to do. */
struct client *client_open(const char *socket, const struct client_request *req, struct err *e);
void client_free(struct client *c); /* NULL is fine */
static inline void auto_client_(struct client **c)
{
	client_free(*c);
}
#define auto_client __attribute__((cleanup(auto_client_)))

/* ---- use ---- */

/* Reads until the head is there; its status, or -errno. */
MUST_USE int client_status(struct client *c, struct err *e);
bool client_has_head(const struct client *c); /* client_status will not wait */
const char *client_content_type(const struct client *c);
int64_t client_retry_after(const struct client *c); /* seconds, -1 when not said */

/* One read from the socket, appended to the body.  1: go on, 0: the body is whole. */
MUST_USE int client_pump(struct client *c, struct err *e);
/* The whole body. Its bytes stay owned by the client. */
MUST_USE int client_body(struct client *c, const char **ret, size_t *ret_len, struct err *e);
/* The next whole line of what has been read (without new line, NUL-terminated), or NULL.  Stays
 * valid until the next call. */
const char *client_line(struct client *c, size_t *ret_len);
/* Hands over what has been read of the body so far. */
void client_drain(struct client *c, struct buf *to);

int client_fd(const struct client *c); /* borrowed: for poll */

/* After status 101: the socket (owned by the caller now), and what came after the head. */
int client_upgraded(struct client *c, struct buf *ret_rest);

#endif
