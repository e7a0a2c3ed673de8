/*
 * Theory of operation.
 *
 * A lane reads into its buffer, writes all of it, reads again.  EAGAIN (the ring
 * does not wait for non-blocking sockets) is answered by a poll on the same op.
 * The end of a lane's source shuts down its sink; a sink that takes nothing any
 * more ends the lane, while the other lane goes on: who refuses the rest of a
 * request may still be answering it.
 *
 * A client that has closed its sending side may still read or may have left
 * altogether.  A poll cannot tell us without firing at once, so from then on we
 * look now and then.
 */
#include "supervisor/relay.h"

#include "base/mem.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

enum {
	LOOK_MS = 1000,   /* how often to look whether a half-closed client has left */
	EXPIRE_MS = 2000, /* for a client to take the rest of what a jail that has ended sent */
};

struct lane {
	struct op op;
	struct relay *relay;
	int from, to;
	bool polling, over;
	size_t len, at; /* bytes in buf, those of them that are written */
	size_t room;
	char *buf; /* owned */
};

struct relay {
	struct loop *loop;
	struct lane up, down; /* to the server, to the client */
	struct op look;
	bool expiring, cut;
	void (*over)(void *ctx);
	void *ctx;
};

static void step(struct relay *r);

static void lane_end(struct lane *l)
{
	if (l->over)
		return;
	l->over = true;
	if (shutdown(l->to, SHUT_WR) < 0)
		return; /* it is gone already */
}

static void on_lane(struct op *op, int res, uint32_t flags)
{
	struct lane *l = container_of(op, struct lane, op);
	bool writing = l->at < l->len;
	(void)flags;
	if (l->polling) {
		l->polling = false;
		if (res < 0)
			lane_end(l);
	} else if (res == -EAGAIN && !l->relay->cut) {
		l->polling = true;
		loop_poll(l->relay->loop, &l->op, writing ? l->to : l->from,
		        writing ? POLLOUT : POLLIN, false, on_lane);
		return;
	} else if (writing && res > 0) {
		l->at += (size_t)res;
	} else if (!writing && res > 0) {
		l->at = 0;
		l->len = (size_t)res;
	} else {
		lane_end(l);
	}
	step(l->relay);
}

static void lane_next(struct lane *l)
{
	if (l->over || l->op.inflight)
		return;
	struct loop *loop = l->relay->loop;
	if (l->at < l->len)
		loop_write(loop, &l->op, l->to, l->buf + l->at, l->len - l->at, on_lane);
	else
		loop_read(loop, &l->op, l->from, l->buf, l->room, on_lane);
}

static void on_look(struct op *op, int res, uint32_t flags)
{
	struct relay *r = container_of(op, struct relay, look);
	(void)flags;
	struct pollfd p = {.fd = r->down.to};
	if (res == -ETIME &&
	        (r->expiring || (poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)))))
		r->cut = true;
	step(r);
}

static void look_later(struct relay *r)
{
	if (r->look.inflight || (!r->up.over && !r->expiring))
		return;
	loop_timeout(r->loop, &r->look, r->expiring ? EXPIRE_MS : LOOK_MS, on_look);
}

static void bury(struct relay *r)
{
	if (r->up.op.inflight || r->down.op.inflight || r->look.inflight) {
		loop_cancel(r->loop, &r->up.op);
		loop_cancel(r->loop, &r->down.op);
		loop_cancel(r->loop, &r->look);
		return;
	}
	void (*over)(void *) = r->over;
	void *ctx = r->ctx;
	free(r->up.buf);
	free(r->down.buf);
	free(r);
	over(ctx);
}

static void step(struct relay *r)
{
	if (r->cut || (r->up.over && r->down.over)) {
		r->cut = r->up.over = r->down.over = true;
		bury(r);
		return;
	}
	lane_next(&r->up);
	lane_next(&r->down);
	look_later(r);
}

void relay_cut(struct relay *r)
{
	r->cut = true;
	/* Never from within the caller: something may still be in flight, or nothing at all. */
	if (r->look.inflight)
		loop_cancel(r->loop, &r->look);
	else
		loop_timeout(r->loop, &r->look, 0, on_look);
}

void relay_expire(struct relay *r)
{
	if (r->expiring || r->cut)
		return;
	r->expiring = true;
	if (r->look.inflight)
		loop_cancel(r->loop, &r->look); /* its end sets it anew */
	else
		look_later(r);
}

static void lane_init(struct relay *r, struct lane *l, int from, int to, const void *p, size_t n)
{
	l->relay = r;
	l->from = from;
	l->to = to;
	l->room = n > RELAY_BYTES ? n : RELAY_BYTES;
	l->buf = xrealloc(NULL, 1, l->room);
	if (n > 0)
		memcpy(l->buf, p, n);
	l->len = n;
}

struct relay *relay_new(const struct relay_spec *spec)
{
	struct relay *r = xnew(struct relay);
	r->loop = spec->loop;
	r->over = spec->over;
	r->ctx = spec->ctx;
	lane_init(r, &r->up, spec->client, spec->server, spec->from_client, spec->nclient);
	lane_init(r, &r->down, spec->server, spec->client, spec->from_server, spec->nserver);
	/* Nothing can be at its end before something was begun. */
	lane_next(&r->up);
	lane_next(&r->down);
	return r;
}
