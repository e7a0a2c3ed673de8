/*
 * http_private.h - what the files of the HTTP server share: http_server.c (accepting,
 * the turn), http_conn.c (one connection), http_answer.c (what is sent on it) and
 * http_request.c (one request, as its handler sees it).
 */
#ifndef SUPERVISOR_HTTP_PRIVATE_H
#define SUPERVISOR_HTTP_PRIVATE_H

#include "base/buf.h"
#include "base/chunked.h"
#include "base/id.h"
#include "base/list.h"
#include "supervisor/conns.h"
#include "supervisor/http.h"

enum {
	HTTP_PARAMS = 4,
	/* What one recv takes, and one block of a stream with its frame. */
	HTTP_SCRATCH = 64 << 10,
	/* The next block of a stream is not asked for while more than a head is unsent. */
	HTTP_OUT_LOW = 4 << 10,
};

/* Who waits for something beside an answer's rest goes first. */
enum http_lane { HTTP_LANE_ASKS, HTTP_LANE_STREAMS, HTTP_LANES };

struct http {
	struct loop *loop;
	struct http_service service;
	gid_t socket_gid;
	int listen_fd, remote_fd; /* borrowed; remote_fd: -1: none */
	int epoll_fd;
	struct conns conns;
	unsigned nbig;                /* of http_conn.big */
	struct list work[HTTP_LANES]; /* of http_conn.work: those that have something to do */
	unsigned nwork[HTTP_LANES];
	struct http_conn *running; /* borrowed: it looks by itself for an answer */
	struct op accept, remote, ready, timer, pause;
	int64_t timer_at_ms, started_ms;
	bool dirty;   /* the connections must be looked at */
	bool stopped; /* accepts no more */
	bool closing;
	struct loop_hook hook;
	struct list upgraded; /* of http_upgraded.link */
	size_t held;          /* by all requests */
	struct list starved;  /* of http_request.starved */
	char *scratch;        /* owned: HTTP_SCRATCH bytes, for the call at hand */
	struct buf decoded;   /* of chunks, for the call at hand */
	int64_t date_s;       /* the second that `date` tells */
	char date[40];
};

enum http_phase {
	HTTP_PHASE_HEAD,
	HTTP_PHASE_BODY,
	HTTP_PHASE_WAIT,   /* for the handler's answer; reads nothing */
	HTTP_PHASE_ANSWER, /* sends it; reads nothing */
	HTTP_PHASE_END,    /* all is said; drops what still comes */
};

struct http_conn {
	struct conn conn;
	struct http *http;
	struct list work; /* in http.work[lane], or empty */
	enum http_lane lane;
	enum http_phase phase;
	struct buf in;                /* came and was not read yet */
	struct buf out;               /* heads, and what a full socket left of a stream's block */
	size_t searched, sent;        /* of in, of out */
	size_t moved;                 /* in this turn */
	struct http_request *request; /* owned: from its head to the end of its answer */
	bool readable, writable;      /* as far as epoll has told */
	bool half_closed, ended,
	        hung_up; /* the client's sending direction; read to the end; both */
	bool last;       /* no request after this one */
	bool linger;     /* it may still be sending */
	bool used;       /* a request on it was answered */
	bool big;        /* its head is one of the few large ones */
	char actor[ID_MAX];
};

struct http_upgraded {
	struct list link;       /* in http.upgraded */
	struct http_conn *conn; /* owned */
};

struct http_pair {
	char *name, *value;
};

struct http_request {
	struct http_conn *conn;
	/* The head, cut into strings. */
	char *text; /* owned; all below point into it */
	const char *method, *path, *query;
	struct http_pair *fields; /* owned, not their texts */
	size_t nfields;
	bool old; /* HTTP/1.0 */
	bool keep_alive, expects, chunked;

	const void *route;
	char *params[HTTP_PARAMS]; /* owned */
	struct http_pair *queries; /* owned: decoded on the first question */
	size_t nqueries;
	bool decoded;

	struct chunked chunks;
	uint64_t left; /* of a body whose length was said */
	struct buf body;
	size_t body_limit, discarded;
	size_t held;         /* that counts: http_memory.c */
	struct list starved; /* in http.starved, or empty */
	bool too_large, handled;
	bool flows; /* its body goes to the sink as it comes */
	struct http_sink sink;

	bool answered;
	int status;
	struct http_pair *headers; /* owned: of the answer */
	size_t nheaders;
	struct buf reply;
	size_t reply_sent;
	bool streams;        /* by source */
	int64_t stream_left; /* -1: unknown */
	bool source_over;    /* it has nothing more to say */
	struct http_source source;
	void (*gone)(void *ctx);
	void *gone_ctx;
	void (*start)(void *ctx, struct http_upgraded *u, int fd, const void *p, size_t n);
	void *start_ctx;
};

/* ---- http_server.c ---- */

/* The connection is looked at in the hook phase, of this turn or the next. */
void http_queue(struct http_conn *c);
const char *http_date(struct http *h);

/* ---- http_conn.c ---- */

/* Takes fd.  NULL: it could not be watched. */
struct http_conn *http_conn_new(struct http *h, int fd, const struct auth_peer *peer);
void http_conn_told(struct http_conn *c, uint32_t events); /* by epoll */
/* Does what can be done now; the connection may be gone afterwards.  True: it has had its share of
 * this turn and there is more. */
bool http_conn_run(struct http_conn *c);
void http_conn_close(struct http_conn *c);
/* Does nobody wait for an answer on it, but for that of a stream? */
bool http_conn_served(const struct http_conn *c);

/* ---- http_answer.c ---- */

/* Puts the head into `out`. */
void http_answer_begin(struct http_conn *c);
/* The next bytes of the body, until the next call: 0: none now, -1: the connection is to be cut.
 * A stream's are to be sent or kept; of another's, reply_sent says how far they are. */
ssize_t http_answer_more(struct http_conn *c, const char **ret);
bool http_answer_all_sent(const struct http_conn *c);

/* ---- http_request.c ---- */

struct http_request *http_request_new(struct http_conn *c);
/* Takes in the head p[n].  As http_head_parse. */
MUST_USE int http_request_head(struct http_request *r, const char *p, size_t n, struct err *e);
bool http_request_is_head(const struct http_request *r); /* HEAD: an answer without its body */
/* Tells whoever waits for the request that nothing will come of it any more; once. */
void http_request_gone(struct http_request *r);
void http_request_free(struct http_request *r);

/* ---- http_memory.c ---- */

/* Answers that there is no room for its body or its answer. */
void http_crowded(struct http_request *r);

#endif
