#include "egress/pipes.h"
#include "base/fd.h"

#include <fcntl.h>
#include <unistd.h>

int pipes_take(struct pipes *p, struct splice_pipe *ret)
{
	if (p->n) {
		*ret = p->kept[--p->n];
		return 0;
	}
	int fds[2];
	if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0)
		return -errno;
	(void)fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES);
	*ret = (struct splice_pipe){.in = fds[1], .out = fds[0]};
	return 0;
}

static void pipe_close(struct splice_pipe *it)
{
	fd_close(it->in);
	fd_close(it->out);
}

void pipes_give(struct pipes *p, struct splice_pipe *it)
{
	if (it->in >= 0 && it->held == 0 && p->n < PIPES_KEPT)
		p->kept[p->n++] = *it;
	else
		pipe_close(it);
	*it = (struct splice_pipe){-1, -1, 0};
}

void pipes_done(struct pipes *p)
{
	while (p->n)
		pipe_close(&p->kept[--p->n]);
}
