/*
 * Theory of operation: bodies that come, answers that nobody takes and what streams read ahead
 * are up to 24 MiB each, and there are thousands of connections.  Each request says how much it
 * holds; what is small is not counted, so that it is never refused for what others do.
 *
 * The bound is looked at before something large begins: it is exceeded by one piece or answer.
 */
#include "supervisor/http_private.h"

#include "base/mem.h"

enum {
	SMALL = 16 << 10, /* four thousand of them are 64 MiB */
	HELD_MAX = 256 << 20,
	HELD_PEER = 192 << 20, /* of one uid: it cannot shut out the others */
};

/* A walk, so only where it can matter. */
static size_t held_by(const struct http *h, uid_t uid)
{
	size_t n = 0;
	for (int s = 0; s < CONN_STATES; s++)
		list_for_each (at, &h->conns.by_state[s], struct conn, link) {
			const struct http_conn *c = container_of(at, struct http_conn, conn);
			if (at->peer.uid == uid && c->request)
				n += c->request->held;
		}
	return n;
}

bool http_room(const struct http_request *r, size_t n)
{
	const struct http *h = r->conn->http;
	if (n <= SMALL || h->held < HELD_PEER)
		return true;
	return h->held < HELD_MAX && held_by(h, r->conn->conn.peer.uid) < HELD_PEER;
}

void http_hold(struct http_request *r, size_t n)
{
	n = n > SMALL ? n : 0;
	if (n == r->held) /* its connection may be gone */
		return;
	struct http *h = r->conn->http;
	bool less = n < r->held;
	h->held = h->held - r->held + n;
	r->held = n;
	if (!less)
		return;
	list_for_each (w, &h->starved, struct http_request, starved) {
		list_remove(&w->starved);
		http_queue(w->conn);
	}
}

void http_starve(struct http_request *r)
{
	list_remove(&r->starved);
	list_append(&r->conn->http->starved, &r->starved);
}

void http_crowded(struct http_request *r)
{
	const struct http_service *s = &r->conn->http->service;
	struct err e;
	err_set(&e, -EBUSY, "large requests and answers have no room: %d MiB are waiting already",
	        (int)(r->conn->http->held >> 20));
	r->handled = true;
	buf_done(&r->body);
	http_hold(r, 0);
	s->malformed(s->ctx, r, &e);
}
