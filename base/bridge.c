#include "base/bridge.h"

#include "base/secure.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

enum { BUSY = 1, IDLE = 0, BROKEN = -1 };
/* Then others have their turn. */
enum { TURNS = 16 };

static ssize_t take_remote(struct bridge *b)
{
	return b->secure ? secure_recv(b->secure, b->in.p, sizeof(b->in.p))
	                 : recv(b->remote, b->in.p, sizeof(b->in.p), 0);
}

static ssize_t give_remote(struct bridge *b)
{
	const char *p = b->out.p + b->out.at;
	size_t n = b->out.len - b->out.at;
	return b->secure ? secure_send(b->secure, p, n) : send(b->remote, p, n, MSG_NOSIGNAL);
}

static ssize_t take_local(struct bridge *b)
{
	ssize_t n = recv(b->local, b->out.p, sizeof(b->out.p), 0);
	/* Closed with something of ours unread: what it had said came first. */
	return n < 0 && errno == ECONNRESET ? 0 : n;
}

static ssize_t give_local(struct bridge *b)
{
	size_t n = b->in.len - b->in.at;
	if (b->deaf)
		return (ssize_t)n;
	ssize_t r = send(b->local, b->in.p + b->in.at, n, MSG_NOSIGNAL);
	if (r < 0 && (errno == EPIPE || errno == ECONNRESET)) {
		b->deaf = true; /* its answer may still be on its way out */
		return (ssize_t)n;
	}
	return r;
}

static int later(void)
{
	return errno == EAGAIN || errno == EINTR ? IDLE : BROKEN;
}

static int fill(struct bridge *b, struct bridge_way *w, ssize_t (*from)(struct bridge *b))
{
	if (w->ended || w->at < w->len)
		return IDLE;
	ssize_t n = from(b);
	if (n < 0)
		return later();
	w->at = 0;
	w->len = (size_t)n;
	w->ended = n == 0;
	return BUSY;
}

static int drain(struct bridge *b, struct bridge_way *w, ssize_t (*to)(struct bridge *b))
{
	if (w->at == w->len)
		return IDLE;
	ssize_t n = to(b);
	if (n <= 0)
		return n < 0 ? later() : BROKEN;
	w->at += (size_t)n;
	return BUSY;
}

static void pass_ends(struct bridge *b)
{
	if (b->in.ended && !b->in.passed) {
		(void)shutdown(b->local, SHUT_WR); /* gone already: as good */
		b->in.passed = true;
	}
	if (b->out.ended && b->out.at == b->out.len && !b->out.passed) {
		if (b->secure)
			secure_end(b->secure);
		(void)shutdown(b->remote, SHUT_WR);
		b->out.passed = true;
	}
}

bool bridge_move(struct bridge *b)
{
	int did = BUSY;
	for (int i = 0; i < TURNS && did > 0; i++) {
		int a = fill(b, &b->in, take_remote), c = drain(b, &b->in, give_local);
		int d = fill(b, &b->out, take_local), f = drain(b, &b->out, give_remote);
		if (a < 0 || c < 0 || d < 0 || f < 0)
			return false;
		did = a + c + d + f;
	}
	pass_ends(b);
	return !(b->in.passed && b->out.passed);
}

bool bridge_answered(const struct bridge *b)
{
	return b->out.passed;
}

void bridge_events(const struct bridge *b, short *ret_remote, short *ret_local)
{
	bool in = b->in.at < b->in.len, out = b->out.at < b->out.len;
	bool write = out || (b->secure && secure_wants_write(b->secure));
	*ret_remote = (short)((!b->in.ended && !in ? POLLIN : 0) | (write ? POLLOUT : 0));
	*ret_local = (short)((!b->out.ended && !out ? POLLIN : 0) | (in ? POLLOUT : 0));
}
