/*
 * exchange.h - one request of a jail and its response: judged, given its
 * credential, forwarded, streamed back.
 *
 * Lives in its http_conn; begun with a parsed head, fed with what the
 * connection reads, over when the connection is told so.  Back-pressure is two
 * flags: `paused` (the jail does not take more, libcurl waits) and `starved`
 * (libcurl wants body bytes that have not come).
 */
#ifndef EGRESS_EXCHANGE_H
#define EGRESS_EXCHANGE_H

#include "base/buf.h"
#include "base/chunked.h"
#include "egress/charge.h"
#include "egress/http.h"
#include "egress/mask.h"
#include "egress/origin.h"
#include "egress/resolve.h"

#include <stdbool.h>
#include <stdint.h>

struct http_conn;
struct transfer;

enum {
	/* Request body waiting for the upstream: two of libcurl's upload chunks. */
	EXCHANGE_BODY_HIGH = 128 << 10,
	/* Request body kept until the response begins, to be sent again where a kept connection
	 * turns out to be closed.  Longer ones go over a new connection. */
	EXCHANGE_REPLAY = 256 << 10,
	/* Response waiting for the jail, at which libcurl is paused and resumed. */
	EXCHANGE_OUT_HIGH = 256 << 10,
	EXCHANGE_OUT_LOW = 64 << 10,
	/* No byte either way: a model may think for minutes before its first one. */
	EXCHANGE_IDLE_MS = 15 * 60 * 1000,
};

enum exchange_framing { FRAME_NONE, FRAME_LENGTH, FRAME_CHUNKED, FRAME_CLOSE };

struct exchange {
	struct transfer *transfer; /* owned, NULL when none is under way */
	struct lookup lookup;
	struct origin origin;
	struct reach reach;
	char name[POLICY_HOST_MAX]; /* inside the jail */
	int rule;                   /* of the jail's policy as it is now; -1: none */
	bool injected;              /* an entry of `inject` has the name */
	char method[HTTP_METHOD_MAX];
	char *path; /* owned; of the target */
	size_t head_bytes;
	int minor;
	bool keep_alive;
	/* request body */
	bool is_chunked, body_done, body_bad, starved;
	struct chunked chunks;
	int64_t left;    /* of Content-Length */
	struct buf body; /* sent and kept for a replay, then not sent yet */
	size_t sent;     /* of `body` */
	bool replayable; /* `body` still begins with the first byte */
	/* response */
	int status; /* 0 until its head is here */
	enum exchange_framing framing;
	bool paused;
	bool waiting; /* for the rate of its rule */
	bool held;    /* for that before it began */
	struct charge charge;
	struct mask mask; /* of the credential, which an upstream may send back */
	bool spent;       /* its rule's bytes are used up */
};

void exchange_init(struct exchange *x);
/* Judges and starts; or answers through http_conn_answer. */
void exchange_begin(struct http_conn *c, const struct http_head *h);
/* Takes body bytes out of c->in, as many as there is room for. */
void exchange_feed(struct http_conn *c);
/* The jail has taken what was sent: goes on when that was waited for. */
void exchange_drained(struct http_conn *c);
/* The connection's deadline: nothing moved for EXCHANGE_IDLE_MS, or it was waiting for its rate. */
void exchange_late(struct http_conn *c);
/* The jail's policy has changed: what it does not allow any more is cut. */
void exchange_follow(struct http_conn *c);
/* Tells that it is cut, and why. */
void exchange_cut(struct http_conn *c, const char *why);
/* Cancels and counts what went out until then. */
void exchange_done(struct http_conn *c);

#endif
