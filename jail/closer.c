#include "jail/closer.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/limits.h"
#include "base/privs.h"
#include "proto/msg.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	THREADS = 32, /* with HOLD_MS and the wait: some 900 closes a second */
	/* Closing an image waits for its disk: such threads may be stuck, and others close the
	 * rest.  One for each jail that there can be. */
	THREADS_MAX = LIMIT_JAILS,
	STACK = 64 << 10,
	HOLD_MS = 20, /* egress has been told before; it closes in its next turn */
	SOCKET_FD = 3,
};

/* Of the threads of that process. */
static atomic_int threads, idle;

static void *close_all(void *unused);

static bool add_thread(void)
{
	pthread_attr_t attr;
	pthread_t t;
	if (atomic_fetch_add(&threads, 1) >= THREADS_MAX) {
		atomic_fetch_sub(&threads, 1);
		return false;
	}
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&t, &attr, close_all, NULL) == 0)
		return true;
	atomic_fetch_sub(&threads, 1); /* fewer are slower, not wrong */
	return false;
}

static void *close_all(void *unused)
{
	static const struct timespec hold = {.tv_nsec = HOLD_MS * 1000000L};
	(void)unused;
	for (;;) {
		char buf[MSG_MAX];
		int fds[MSG_FDS];
		atomic_fetch_add(&idle, 1);
		int n = msg_recv(SOCKET_FD, buf, fds);
		bool last = atomic_fetch_sub(&idle, 1) == 1;
		if (n < 0 && msg_later(n))
			continue;
		if (n <= 0)
			_exit(0); /* agentboxd is gone, or through with us */
		if (last)
			(void)add_thread();
		nanosleep(&hold, NULL);
		for (int i = 0; i < MSG_FDS; i++)
			fd_close(fds[i]);
	}
	return NULL;
}

static _Noreturn void closer_main(int socket)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	prctl(PR_SET_NAME, "agentbox-closer", 0, 0, 0);
	if (dup3(socket, SOCKET_FD, 0) < 0 && socket != SOCKET_FD)
		_exit(1);
	if (close_range(SOCKET_FD + 1, ~0U, 0) < 0 || privs_drop(ID_POLICYC, ID_POLICYC, NULL) < 0)
		_exit(1);
	threads = 1;
	for (int i = 1; i < THREADS && add_thread(); i++)
		;
	close_all(NULL);
	_exit(0);
}

int closer_start(struct closer *ret, struct err *e)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, "closer: socket");
	auto_close int ours = pair[0], theirs = pair[1];
	pid_t pid = fork();
	if (pid < 0)
		return err_errno(e, "closer: fork");
	if (pid == 0)
		closer_main(theirs);
	int r = fd_set_nonblock(ours, 1);
	if (r < 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return err_set(e, r, "closer: O_NONBLOCK: %s", strerror(-r));
	}
	*ret = (struct closer){.socket = take_fd(ours), .pid = pid};
	return 0;
}

void closer_give(const struct closer *c, int fd)
{
	struct msg_head m = {.type = 1};
	if (fd >= 0 && c && c->socket >= 0)
		(void)!msg_send(c->socket, &m, sizeof(m), &fd, 1);
	fd_close(fd);
}

void closer_stop(struct closer *c)
{
	if (c->pid <= 0)
		return;
	fd_close(take_fd(c->socket));
	while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
		;
	c->pid = -1;
}
