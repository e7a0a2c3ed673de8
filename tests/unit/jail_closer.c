/* What others close: the rest goes on while some of it waits. */
#include "tests/t.h"
#include "base/fd.h"
#include "jail/closer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

enum { STUCK = 100, LINGER_S = 60 };

/* A connection whose close waits: there is what its peer does not read. */
static int lingering(int listener, const struct sockaddr_in *at, int *ret_peer)
{
	static char block[65536];
	const struct linger l = {.l_onoff = 1, .l_linger = LINGER_S};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(fd, (const struct sockaddr *)at, sizeof(*at)) < 0 ||
	        setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)) < 0)
		return -1;
	*ret_peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	while (send(fd, block, sizeof(block), MSG_DONTWAIT) > 0)
		;
	return fd;
}

int main(void)
{
	if (geteuid() != 0)
		skip_all("needs root");
	struct closer c = CLOSER_NONE;
	struct err e = {0};
	int before = fd_count();
	must(closer_start(&c, &e) == 0, "it starts %s", e.text);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	int peers[STUCK], ends[2];
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(bind(listener, (const struct sockaddr *)&at, n) == 0 && listen(listener, STUCK) == 0 &&
	                getsockname(listener, (struct sockaddr *)&at, &n) == 0,
	        "a listener");
	int lacking = 0;
	for (int i = 0; i < STUCK; i++) {
		int fd = lingering(listener, &at, &peers[i]);
		lacking += fd < 0;
		closer_give(&c, fd);
	}
	ok(lacking == 0, "%d whose close waits are given", STUCK);
	must(pipe(ends) == 0, "a pipe");
	closer_give(&c, ends[1]);
	struct pollfd p = {.fd = ends[0], .events = POLLIN};
	ok(poll(&p, 1, LINGER_S * 1000 / 3) == 1 && (p.revents & POLLHUP),
	        "what is given then is closed before them");
	for (int i = 0; i < STUCK; i++)
		fd_close(peers[i]);
	fd_close(ends[0]);
	fd_close(listener);
	closer_stop(&c);
	ok(fd_count() == before, "no descriptor is left");
	return done();
}
