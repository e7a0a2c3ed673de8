#include "jail/job.h"
#include "base/fd.h"
#include "base/mem.h"
#include "proto/msg.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct answer {
	struct msg_head head;
	int32_t result;
	uint32_t fds;  /* bit i: descriptor i came along */
	uint64_t size; /* of bytes */
	struct err why;
	_Alignas(8) unsigned char bytes[JOB_BYTES];
};
_Static_assert(sizeof(struct answer) <= MSG_MAX && (int)JOB_FDS <= (int)MSG_FDS, "one datagram");

void job_out_close(struct job_out *o)
{
	for (int i = 0; i < JOB_FDS; i++)
		fd_close(take_fd(o->fds[i]));
}

/* ---- the child: one thread, as agentboxd has, so all of libc may be used ---- */

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int close_others(const struct job_spec *s, int socket)
{
	int keep[JOB_KEEP + 1];
	size_t n = 0;
	keep[n++] = socket;
	for (size_t i = 0; i < s->nkeep; i++)
		if (s->keep[i] > STDERR_FILENO)
			keep[n++] = s->keep[i];
	qsort(keep, n, sizeof(*keep), by_number);
	unsigned from = STDERR_FILENO + 1;
	for (size_t i = 0; i < n; i++) {
		unsigned at = (unsigned)keep[i];
		if (at > from && close_range(from, at - 1, 0) < 0)
			return -errno;
		from = at + 1;
	}
	return close_range(from, ~0u, 0) < 0 ? -errno : 0;
}

static int begin(const struct job_spec *s, int socket, pid_t parent, struct err *e)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_errno(e, "parent-death signal");
	if (getppid() != parent)
		return err_set(e, -ESRCH, "agentboxd is gone");
	(void)prctl(PR_SET_NAME, "agentbox-job", 0, 0, 0); /* for who looks at processes */
	int r = close_others(s, socket);
	return r < 0 ? err_set(e, r, "closing descriptors: %s", strerror(-r)) : 0;
}

static _Noreturn void child_main(const struct job_spec *s, int socket, pid_t parent)
{
	struct job_out out = JOB_OUT_NONE;
	struct answer a = {.head.type = 1};
	int fds[JOB_FDS], n = 0;
	int r = begin(s, socket, parent, &a.why);
	if (r == 0)
		r = s->work(s->arg, &out, &a.why);
	a.result = r;
	if (r >= 0) {
		assert(out.size <= JOB_BYTES);
		a.size = out.size;
		memcpy(a.bytes, out.bytes, out.size);
	}
	for (int i = 0; r >= 0 && i < JOB_FDS; i++) {
		if (out.fds[i] < 0)
			continue;
		a.fds |= 1u << i;
		fds[n++] = out.fds[i];
	}
	_exit(-msg_send(socket, &a, sizeof(a), fds, n) & 0xff); /* no_answer reads it */
}

/* ---- in agentboxd ---- */

int job_start(const struct job_spec *spec, struct job *ret, struct err *e)
{
	assert(spec->nkeep <= JOB_KEEP);
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, "socket to a child");
	auto_close int ours = pair[0], theirs = pair[1];
	int r = fd_set_nonblock(ours, 1);
	if (r < 0)
		return err_set(e, r, "socket to a child: %s", strerror(-r));
	pid_t parent = getpid(), pid = fork();
	if (pid < 0)
		return err_errno(e, "fork");
	if (pid == 0)
		child_main(spec, theirs, parent);
	/* Race-free: it is our child and not reaped yet. */
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		r = err_errno(e, "pidfd_open");
		(void)kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		return r;
	}
	*ret = (struct job){.child = {.pid = pid, .pidfd = pidfd}, .socket = take_fd(ours)};
	return 0;
}

static int no_answer(int got, int status, struct err *e)
{
	if (got < 0)
		return err_set(e, got, "the answer of a child of agentboxd: %s", strerror(-got));
	if (WIFSIGNALED(status))
		return err_set(
		        e, -EIO, "a child of agentboxd was killed (signal %d)", WTERMSIG(status));
	int why = WEXITSTATUS(status);
	return err_set(e, -EIO, "a child of agentboxd ended without an answer: %s",
	        why ? strerror(why) : "it gives no reason");
}

int job_end(struct job *j, int status, struct job_out *out, struct err *e)
{
	union {
		struct answer a;
		char bytes[MSG_MAX];
	} u;
	int fds[MSG_FDS], n = 0;
	int got = msg_recv(j->socket, &u, fds);
	job_forget(j);
	if (got != (int)sizeof(u.a))
		return no_answer(got, status, e);
	if (u.a.result < 0)
		return err_set(e, u.a.result, "%s", u.a.why.text);
	*out = (struct job_out)JOB_OUT_NONE;
	out->size = u.a.size;
	memcpy(out->bytes, u.a.bytes, sizeof(out->bytes));
	for (int i = 0; i < JOB_FDS; i++)
		if (u.a.fds & 1u << i)
			out->fds[i] = fds[n++];
	return u.a.result;
}

void job_forget(struct job *j)
{
	fd_close(take_fd(j->socket));
}
