/* Bytes both ways, plain: more than a buffer, ends each by itself, a side that is gone. */
#include "base/bridge.h"

#include "base/fd.h"
#include "base/mem.h"
#include "tests/t.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

static struct bridge b;
static int client, server; /* the far ends */

static void begin(void)
{
	int r[2], l[2];
	const int small = 4096;
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, r) == 0 &&
	                socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, l) == 0,
	        "pairs");
	(void)setsockopt(l[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	memset(&b, 0, sizeof(b));
	b.remote = r[0];
	b.local = l[0];
	client = r[1];
	server = l[1];
}

static void end(void)
{
	fd_close(b.remote);
	fd_close(b.local);
	fd_close(client);
	fd_close(server);
}

static size_t take_all(int fd, char *p, size_t n)
{
	size_t got = 0;
	ssize_t r;
	while (got < n && (r = recv(fd, p + got, n - got, 0)) > 0)
		got += (size_t)r;
	return got;
}

static void test_bytes(void)
{
	enum { ALL = 200000 };
	static char sent[ALL], got[ALL];
	short remote, local;
	size_t out = 0, in = 0;
	bool backed = false;
	begin();
	for (size_t i = 0; i < ALL; i++)
		sent[i] = (char)(i * 7 + i / 256);
	for (int turn = 0; turn < 10000 && in < ALL; turn++) {
		ssize_t n = out < ALL ? send(client, sent + out, ALL - out, 0) : 0;
		out += n > 0 ? (size_t)n : 0;
		if (!bridge_move(&b))
			break;
		bridge_events(&b, &remote, &local);
		/* What cannot be passed on is not read. */
		backed |= (local & POLLOUT) && !(remote & POLLIN);
		in += take_all(server, got + in, ALL - in);
	}
	ok(in == ALL && memcmp(sent, got, ALL) == 0, "all of it, as it was: %zu", in);
	ok(backed, "at the pace of whoever reads");
	end();
}

static void test_ends(void)
{
	char text[16];
	short remote, local;
	begin();
	ok(send(client, "ask", 3, 0) == 3 && shutdown(client, SHUT_WR) == 0 && bridge_move(&b),
	        "one direction ends, the other goes on");
	ok(take_all(server, text, sizeof(text)) == 3 && recv(server, text, 1, 0) == 0, "told so");
	bridge_events(&b, &remote, &local);
	ok(remote == 0 && local == POLLIN, "it waits for the answer alone");
	ok(!bridge_answered(&b), "which is due");
	ok(send(server, "answer", 6, 0) == 6 && bridge_move(&b), "it comes");
	ok(take_all(client, text, sizeof(text)) == 6, "and goes out");
	shutdown(server, SHUT_WR);
	ok(!bridge_move(&b) && bridge_answered(&b), "then it is over");
	ok(recv(client, text, 1, 0) == 0, "for both");
	end();
}

static void test_gone(void)
{
	char text[16];
	begin();
	ok(send(server, "bye", 3, 0) == 3, "an answer");
	fd_close(take_fd(server));
	ok(send(client, "more", 4, 0) == 4 && bridge_move(&b), "before its server is gone");
	ok(take_all(client, text, sizeof(text)) == 3 && recv(client, text, 1, 0) == 0,
	        "is read to its end");
	ok(send(client, "more", 4, 0) == 4 && bridge_move(&b), "what still comes is dropped");
	fd_close(take_fd(client));
	ok(!bridge_move(&b), "until the client has left");
	end();
}

int main(void)
{
	test_bytes();
	test_ends();
	test_gone();
	return done();
}
