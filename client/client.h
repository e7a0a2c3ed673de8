/*
 * client.h - one request to the daemon over its Unix socket.
 *
 * A client is one connection and one request; the next request makes a new
 * one.  A library for all of HTTP would bring TLS, proxies and name resolution
 * for one local socket, so this is what is needed and no more: send, read the
 * head, then the body whole, by lines, or - after 101 - the bare socket.
 */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include "base/buf.h"
#include "base/digest.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client; /* opaque */

/* Whom to ask, and as whom.  All borrowed. */
struct client_peer {
	const char *socket;
	const char *url;      /* http://HOST:PORT or https://HOST[:PORT]; NULL: the socket */
	const char *ca_file;  /* PEM, of whom https is to trust; NULL: whom this host trusts */
	const char *key_file; /* of an API key, which is sent along; NULL: none */
	void (*told)(const char *version); /* what answers tell of the daemon's version; NULL */
};

struct client_request {
	const char *method, *path;
	const char *accept; /* NULL: application/json */
	const char *body;   /* JSON, or NULL */
	size_t body_len;
	int from;              /* where a body of any bytes comes from, with from_len > 0 */
	uint64_t from_len;     /* exactly so many */
	const char *upgrade;   /* protocol asked for, or NULL */
	int64_t last_event_id; /* < 1: not sent */
	uint64_t range_from;   /* > 0: only the bytes from there on (206), */
	const char *if_range;  /* if they are still those of this SHA-256 (else 200 and all) */
	bool again;            /* to be made twice does no harm, though it is no GET */
};

/* ---- life ---- */

/* Connects and sends the whole request.  Returns owned, or NULL with *e: then e->code tells
 * "nobody there" (-ENOENT, -ECONNREFUSED, -EACCES) from the rest, and the text says what to do. */
struct client *client_open(
        const struct client_peer *peer, const struct client_request *req, struct err *e);
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
/* A connection to the Unix socket on which nobody has read the request yet. */
bool client_unread(const struct client *c);
const char *client_content_type(const struct client *c);
int64_t client_retry_after(const struct client *c); /* seconds, -1 when not said */
int64_t client_length(const struct client *c); /* of the body when its head came, -1: not said */
int client_mode(const struct client *c); /* permission bits of a session's file, -1 when not said */

/* One read from the socket, appended to the body.  1: go on, 0: the body is whole. */
MUST_USE int client_pump(struct client *c, struct err *e);
/* The whole body. Its bytes stay owned by the client. */
MUST_USE int client_body(struct client *c, const char **ret, size_t *ret_len, struct err *e);
/* The next whole line of what has been read (without new line, NUL-terminated), or NULL.  Stays
 * valid until the next call. */
const char *client_line(struct client *c, size_t *ret_len);
/* Hands over what has been read of the body so far. */
void client_drain(struct client *c, struct buf *to);
/* The rest of the body, at most so many bytes, written to `fd` as it comes and counted into `d`
 * (NULL is fine). 0 or -errno. */
MUST_USE int client_copy(struct client *c, int fd, uint64_t most, struct digest *d, struct err *e);

int client_fd(const struct client *c); /* borrowed: for poll */

/* All bytes into a socket, without SIGPIPE. 0 or -errno. */
MUST_USE int client_send_all(int fd, const void *p, size_t n);

/* After status 101: the socket (owned by the caller now), and what came after the head. */
int client_upgraded(struct client *c, struct buf *ret_rest);

#endif
