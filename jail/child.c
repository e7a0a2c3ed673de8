#include "jail/child.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "jail/poller.h"
#include "jail/shut.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* None of agentboxd's own environment is passed on: it may hold secrets. */
static const char path_variable[] =
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/* ---- in the child: agentboxd has one thread, so after fork all of libc may be used ---- */

static int reset_signals(struct err *e)
{
	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL); /* fails for KILL, STOP and libc's own: as it should */
	sigset_t none;
	sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? err_errno(e, "signal mask") : 0;
}

/* Two passes, because a source may sit on another one's place. */
static int place_fds(const struct child_spec *s, int *error_fd, struct err *e)
{
	enum { ABOVE = 3 + CHILD_FDS_MAX + 1 };
	int high[CHILD_FDS_MAX];
	for (int i = 0; i < s->nfds; i++) {
		high[i] = fcntl(s->fds[i], F_DUPFD_CLOEXEC, ABOVE);
		if (high[i] < 0)
			return err_errno(e, "descriptor %d", 3 + i);
	}
	int error_high = fcntl(*error_fd, F_DUPFD_CLOEXEC, ABOVE);
	if (error_high < 0)
		return err_errno(e, "error pipe");
	*error_fd = error_high; /* its old number may be one of those that are placed */
	if (s->stdin_fd > 0 && dup2(s->stdin_fd, STDIN_FILENO) < 0)
		return err_errno(e, "stdin");
	if (s->stdout_fd > 0 && dup2(s->stdout_fd, STDOUT_FILENO) < 0)
		return err_errno(e, "stdout");
	if (s->stderr_fd >= 0 && dup2(s->stderr_fd, STDERR_FILENO) < 0)
		return err_errno(e, "stderr");
	for (int i = 0; i < s->nfds; i++)
		if (dup2(high[i], 3 + i) < 0)
			return err_errno(e, "descriptor %d", 3 + i);
	/* What lies between is agentboxd's; the rest is close-on-exec, checked or not. */
	int last = dup3(error_high, 3 + s->nfds, O_CLOEXEC);
	if (last < 0)
		return err_errno(e, "error pipe");
	*error_fd = last;
	if (close_range((unsigned)*error_fd + 1, ~0u, 0) < 0)
		return err_errno(e, "close_range");
	return 0;
}

static int execute(const struct child_spec *s, struct err *e)
{
	size_t n = 0;
	while (s->env && s->env[n])
		n++;
	const char **env = xcalloc(n + 2, sizeof(*env));
	env[0] = path_variable;
	for (size_t i = 0; i < n; i++)
		env[1 + i] = s->env[i];
	/* execve's prototype is older than const. */
	execve(s->path, (char *const *)(uintptr_t)s->argv, (char *const *)(uintptr_t)env);
	int r = err_errno(e, "exec");
	free(env);
	return r;
}

/* The bounding set stays: under no_new_privs no exec gains from it. */
static int drop_ids(const struct child_spec *s, struct err *e)
{
	const uint32_t keep = s->reads_all ? 1u << CAP_DAC_OVERRIDE : 0;
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {
	        {.effective = keep, .permitted = keep, .inheritable = keep}, {0}};
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 ||
	        setresgid(s->uid, s->uid, s->uid) < 0 || setresuid(s->uid, s->uid, s->uid) < 0)
		return err_errno(e, "becoming uid %u", s->uid);
	if (syscall(SYS_capset, &h, d) < 0 ||
	        (keep && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0) < 0))
		return err_errno(e, "capabilities");
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? err_errno(e, "no_new_privs") : 0;
}

static int become(const struct child_spec *s, pid_t parent, int *error_fd, struct err *e)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_errno(e, "parent-death signal");
	if (getppid() != parent)
		return err_set(e, -ESRCH, "agentboxd is gone");
	int r = reset_signals(e);
	if (r < 0)
		return r;
	if (s->no_network && unshare(CLONE_NEWNET) < 0)
		return err_errno(e, "own network namespace");
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return err_errno(e, "/dev/null");
	if (s->own_group && setpgid(0, 0) < 0)
		return err_errno(e, "own process group");
	if (chdir("/") < 0)
		return err_errno(e, "chdir /");
	r = s->shut_in ? shut_programs(e) : 0;
	if (r == 0)
		r = place_fds(s, error_fd, e);
	if (r == 0 && s->uid)
		r = drop_ids(s, e);
	/* again: a change of ids has cleared it */
	if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		r = err_errno(e, "parent-death signal");
	if (r == 0 && getppid() != parent)
		r = err_set(e, -ESRCH, "agentboxd is gone");
	return r < 0 ? r : execute(s, e);
}

/* ---- in agentboxd ---- */

int child_start(const struct child_spec *spec, struct child *ret, struct err *e)
{
	if (spec->nfds > CHILD_FDS_MAX)
		return err_set(e, -E2BIG, "%s: %d descriptors", spec->path, spec->nfds);
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(e, "pipe");
	auto_close int rd = ends[0];
	auto_close int wr = ends[1];
	pid_t parent = getpid(), pid = fork();
	if (pid < 0)
		return err_errno(e, "fork");
	if (pid == 0) {
		struct err why = {0};
		if (become(spec, parent, &wr, &why) < 0)
			(void)!write(wr, &why, sizeof(why));
		_exit(111);
	}
	fd_close(take_fd(wr));
	/* Race-free: it is our child and not reaped yet. */
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int error = pidfd < 0 ? errno : 0;
	struct err why;
	ssize_t n = fd_read_full(rd, &why, sizeof(why));
	if (pidfd < 0 || n != 0) {
		int r = n == (ssize_t)sizeof(why)
		                ? err_set(e, why.code, "starting %s: %s", spec->path, why.text)
		                : err_set(e, -EIO, "starting %s: %s", spec->path,
		                          strerror(error   ? error
		                                   : n < 0 ? (int)-n
		                                           : EPIPE));
		(void)kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		return r;
	}
	ret->pid = pid;
	ret->pidfd = take_fd(pidfd);
	return 0;
}

void child_kill(const struct child *c)
{
	if (c->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0); /* gone is fine */
}

int child_reap(struct child *c, int ms)
{
	struct pollfd p = {.fd = c->pidfd, .events = POLLIN};
	int n;
	do {
		n = poll(&p, 1, ms);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return -ETIME;
	int status = 0;
	pid_t pid;
	do {
		pid = waitpid(c->pid, &status, WNOHANG | __WALL); /* also one of launch.c's */
	} while (pid < 0 && errno == EINTR);
	if (pid != c->pid)
		return -ETIME; /* a tracer holds it */
	fd_close(take_fd(c->pidfd));
	c->pid = 0;
	return status;
}

int child_reap_watched(struct child *c, struct poller *p, struct watch *w)
{
	struct err e;
	watch_fn *ready = w->ready;
	int pidfd = c->pidfd;
	poller_remove(p, w);
	int status = child_reap(c, 0);
	/* Held by a tracer: looked at again when it lets go. */
	if (status == -ETIME && poller_add(p, w, pidfd, EPOLLIN, ready, &e) < 0)
		log_err("a child's end will not be seen: %s", e.text);
	return status;
}

/* Until EOF or the deadline.  What does not fit is dropped: it is for people. */
static void collect(int fd, int64_t until_ms, struct buf *said)
{
	char piece[1024];
	for (;;) {
		int64_t left = until_ms - clock_mono_ms();
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int n = left > 0 ? poll(&p, 1, (int)left) : 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		ssize_t k = read(fd, piece, sizeof(piece));
		if (k <= 0)
			return;
		(void)buf_put(said, piece, (size_t)k);
	}
}

int child_run(const struct child_spec *spec, int ms, struct buf *said, struct err *e)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(e, "pipe");
	auto_close int rd = ends[0];
	auto_close int wr = ends[1];
	struct child_spec told = *spec;
	told.stderr_fd = wr;
	struct child c = CHILD_NONE;
	int64_t until = clock_mono_ms() + ms;
	int r = child_start(&told, &c, e);
	if (r < 0)
		return r;
	fd_close(take_fd(wr));
	collect(rd, until, said);
	int64_t left = until - clock_mono_ms();
	int status = child_reap(&c, left > 0 ? (int)left : 0);
	if (status >= 0)
		return status;
	child_kill(&c);
	(void)child_reap(&c, -1); /* its status is ours: SIGKILL */
	return err_set(e, -ETIME, "%s did not end within %d s", spec->argv[0], ms / 1000);
}

void child_status_text(int status, char out[32])
{
	if (WIFSIGNALED(status))
		snprintf(out, 32, "signal %d", WTERMSIG(status));
	else
		snprintf(out, 32, "exit code %d", WEXITSTATUS(status));
}
