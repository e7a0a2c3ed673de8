/* quiet_egress.c - an egress that takes everything and lets nothing out, for tests of agentboxd. */
#include "base/fd.h"
#include "proto/build.h"
#include "proto/children.h"
#include "proto/egress.h"

#include <poll.h>

int main(int argc, char **argv)
{
	struct err e;
	if (build_check(argc, argv, &e) != 0)
		return argc != 3;
	_Alignas(16) char bytes[MSG_MAX];
	for (;;) {
		struct pollfd p = {.fd = CHILD_CONTROL, .events = POLLIN};
		if (poll(&p, 1, -1) < 0)
			return 1;
		int fds[MSG_FDS];
		int n = msg_recv(CHILD_CONTROL, bytes, fds);
		if (n == 0)
			return 0;
		for (int i = 0; n > 0 && i < MSG_FDS; i++)
			fd_close(fds[i]);
	}
}
