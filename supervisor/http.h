/*
 * http.h - HTTP/1.1 over the control socket: connections, requests, replies.
 *
 * The ring accepts and polls the epoll descriptor of all connections.  What a
 * path means is the caller's matter (routes.h).
 *
 * A request reaches its handler when its body is complete, or, where the service
 * says HTTP_BODY_FLOWS, with its headers; then the body goes to the sink of
 * http_take_body as it comes.  The handler calls
 * exactly one of http_reply, http_stream and http_upgrade, at once or later;
 * until then the request rests and costs no processor time.  Afterwards the
 * request is no longer the handler's, except that a stream's may be woken until
 * its `gone`.  When the client leaves first, the `gone` of http_on_gone or of
 * the stream is called once, and the request must be forgotten.
 *
 * A client that closes only its sending direction has not left: it gets its
 * answer, however long that takes.
 *
 * Slow, idle, oversized and surplus clients are dealt with here: the limits are
 * in conns.c and http_conn.c.
 */
#ifndef SUPERVISOR_HTTP_H
#define SUPERVISOR_HTTP_H

#include "base/buf.h"
#include "base/err.h"
#include "supervisor/auth.h"
#include "supervisor/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct http;          /* the server */
struct http_request;  /* one request, until it is answered */
struct http_upgraded; /* a connection that speaks another protocol now */

#define HTTP_BODY_FLOWS INT64_MAX

/* What the server calls.  `ctx` is borrowed: for the life of the server. */
struct http_service {
	void *ctx;
	/* The headers are there.  Returns the most bytes of body to take (0: none), or
	 * HTTP_BODY_FLOWS; negative: refused, and answered by http_reply already. */
	int64_t (*headers)(void *ctx, struct http_request *r);
	/* The body is there.  Answers now or later. */
	void (*request)(void *ctx, struct http_request *r);
	/* The body was larger than allowed.  Answers now. */
	void (*too_large)(void *ctx, struct http_request *r);
	/* It cannot be read; its method and path may be "".  Answers now.  -EINVAL: not HTTP;
	 * -E2BIG: the head is too large, -ENAMETOOLONG: by its first line alone;
	 * -EPROTONOSUPPORT, -EACCES: another version; -EOPNOTSUPP: an unknown coding or
	 * expectation; -EBUSY: there is no memory for its body, or for its answer. */
	void (*malformed)(void *ctx, struct http_request *r, const struct err *e);
	/* It has an answer, which goes out after this; NULL: nobody wants to know. */
	void (*answered)(void *ctx, struct http_request *r, int status);
};

/* ---- the server ---- */

/* Accepts on listen_fd from now on, and takes the clients that come over remote_fd
 * (proto/listener.h; -1: none); both are borrowed.  Returns owned, or NULL with *e set. */
struct http *http_new(struct loop *l, int listen_fd, int remote_fd, gid_t socket_gid,
        const struct http_service *service, struct err *e);
/* No new connection; those that are open go on until http_free. */
void http_stop_accepting(struct http *h);
/* After http_stop_accepting: nobody waits for an answer, but for streams. */
bool http_quiet(const struct http *h);
void http_free(struct http *h);
/* Cuts all connections on behalf of an actor, streams and upgraded ones too; NULL is fine. */
void http_cut_actor(struct http *h, const char *id);
unsigned http_connections(const struct http *h);
int64_t http_started_ms(const struct http *h); /* monotonic */

/* ---- a request: all texts live as long as it does ---- */

const char *http_method(const struct http_request *r);
const char *http_path(const struct http_request *r); /* as sent: percent-encoded, no query */
/* Decoded value of a query parameter; NULL where there is none or it cannot be decoded. */
const char *http_query(struct http_request *r, const char *name);
/* One that is 0 or 1, false where it is missing.  -EINVAL. */
MUST_USE int http_query_flag(struct http_request *r, const char *name, bool *ret, struct err *e);
/* Calls `each` for every query parameter, decoded; NULL: what cannot be, or is not there. */
void http_each_query(struct http_request *r,
        void (*each)(void *ctx, const char *name, const char *value), void *ctx);
/* The query as it was sent, or NULL. */
const char *http_raw_query(const struct http_request *r);
/* Every header, in order; stops at a negative result and returns it. */
int http_each_header(const struct http_request *r,
        int (*each)(void *ctx, const char *name, const char *value), void *ctx);
const char *http_header(const struct http_request *r, const char *name);
const char *http_body(const struct http_request *r, size_t *ret_len); /* NUL-terminated */
/* Of a request whose body flows; to be set by its handler, unless that answers at once. */
struct http_sink {
	/* The most bytes of the next push; 0: none before http_wake. */
	size_t (*room)(void *ctx);
	void (*push)(void *ctx, const char *p, size_t n);
	void (*end)(void *ctx); /* that was all of it */
	void *ctx;
};
void http_take_body(struct http_request *r, const struct http_sink *sink);
bool http_has_body(const struct http_request *r); /* one is announced */
const struct auth_peer *http_peer(const struct http_request *r);
/* On whose behalf it comes (an id, or ""): of the connection, until it is said anew. */
const char *http_actor(const struct http_request *r);
void http_set_actor(struct http_request *r, const char *id);
/* Connections on behalf of that actor, but for this request's. */
unsigned http_actor_connections(const struct http_request *r, const char *id);
/* The route's parameters (routes.c sets them; n from 0), decoded; NULL beyond the last. */
const char *http_param(const struct http_request *r, unsigned n);
MUST_USE int http_add_param(struct http_request *r, const char *encoded, size_t n);
/* For the service's own use between headers and request. */
void http_set_route(struct http_request *r, const void *route);
const void *http_route(const struct http_request *r);

/* ---- answers ---- */

/* A header of the answer to come; name and value are copied. */
void http_add_header(struct http_request *r, const char *name, const char *value);
const char *http_answer_header(const struct http_request *r, const char *name); /* or NULL */
/* `body` is taken whatever happens (NULL: empty); `type` static. */
void http_reply(struct http_request *r, int status, const char *type, struct buf *body);

/* The client went away before the answer. */
void http_on_gone(struct http_request *r, void (*gone)(void *ctx), void *ctx);

enum {
	HTTP_WAIT = 0,   /* nothing now: http_wake brings the next pull */
	HTTP_END = -1,   /* the end, as announced */
	HTTP_ABORT = -2, /* cut the connection: the client must see that something is missing */
};
/* For a pull: what of `out` is behind *sent, which it moves. */
ssize_t http_give(const struct buf *out, size_t *sent, char *p, size_t max);
struct http_source {
	/* Up to max bytes into p; their number, or one of the above. */
	ssize_t (*pull)(void *ctx, char *p, size_t max);
	void (*gone)(void *ctx); /* the last call: ended, cut or left */
	void *ctx;
};
/* length: bytes to come, or -1 where unknown (then chunked). */
/* type: static, or NULL where the headers have it. */
void http_stream(struct http_request *r, int status, const char *type, int64_t length,
        const struct http_source *source);
void http_wake(struct http_request *r); /* of a stream or a body; harmless when it is not waiting */

/* What all requests together make the daemon hold is bounded, and of that each user's part. */
/* Is there room for n bytes more of this request? */
bool http_room(const struct http_request *r, size_t n);
/* It holds n bytes now: for a stream, what its source has ready; bodies and replies are counted by
 * the server. */
void http_hold(struct http_request *r, size_t n);
/* http_wake for a stream when others hold less. */
void http_starve(struct http_request *r);

/* 101, then `start` with the socket (non-blocking; borrowed: until http_upgraded_close) and what
 * the client already sent behind its request (borrowed: for the call).  When the client leaves
 * before, on_gone is called instead. */
void http_upgrade(struct http_request *r, const char *protocol,
        void (*start)(void *ctx, struct http_upgraded *u, int fd, const void *p, size_t n),
        void *ctx);
void http_upgraded_close(struct http_upgraded *u); /* closes the socket */

#endif
