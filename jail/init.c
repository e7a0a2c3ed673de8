/*
 * agentbox-init: PID 1 of a jail, an exec server on fd 3 (proto/init.h).
 *
 * Theory of operation: it is started by agentboxd (enter.c) as inner uid 65533,
 * which it shares with nobody, non-dumpable, under the policy's own filter,
 * with CAP_SETUID, SETGID, SETPCAP and KILL of the jail's user namespace and
 * nothing else.  Each request becomes a child that gives those up and execs
 * while we wait (vfork); a failure comes back through memory they share.  It
 * reaps everything, reports the end of each main process, and never allocates.
 *
 * It must not die while anyone lives, because its death kills the jail: so
 * nothing here exits but EOF on fd 3, which means that agentboxd is gone; and
 * one without memory for its requests, before there is anyone.
 */
#include "base/limits.h"
#include "jail/caps.h"
#include "proto/exec.h"
#include "proto/init.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	CONTROL = 3,
	EXECS = 256,     /* programs alive at once, started by requests */
	REQUEST_FDS = 6, /* exec memfd, stdin, stdout, stderr; a program; variables */
	REQUEST_FDS_MIN = 4,
	PROGRAM_FD = 3, /* after fork, where the program is until it is exec'd */
	PATH_BUF = 4096,
};

/* The agent's group: how inner root, which has no capability to ignore modes, gets into the
 * agent's directories (mode 0770). */
static const gid_t agent_group = 1000;

struct request {
	struct init_exec m;
	int fds[REQUEST_FDS];
	char **argv, **env, *cwd;
	volatile int stage, error; /* written by the child */
};

union packet {
	struct msg_head head;
	struct init_exec exec;
	struct init_signal signal;
	char bytes[256];
};

/* Shared, so that a child with a copy of all else writes to it too; or why there is none. */
static struct request *request;
static int request_error;

static struct {
	uint64_t exec;
	pid_t pid; /* 0: free */
} running[EXECS];

/* As msg_later in proto/msg.h. */
static bool passes(int error)
{
	return error == EAGAIN || error == EINTR || error == ENOBUFS || error == ENOMEM;
}

/* Until it is said: without it, whoever waits for this program waits for ever. */
static void report(const struct init_exited *what)
{
	static const struct timespec pause = {.tv_nsec = 1000000};
	struct init_exited m = *what;
	m.head = (struct msg_head){.magic = MSG_MAGIC, .type = INIT_EXITED, .size = sizeof(m)};
	while (send(CONTROL, &m, sizeof(m), MSG_NOSIGNAL) < 0 && passes(errno))
		ppoll(NULL, 0, &pause, NULL);
}

/* ---- the child of a request: on PID 1's memory, or a copy of it, until exec ---- */

static int take_stdio(const struct request *r)
{
	for (int i = 0; i < 3; i++) {
		if (dup2(r->fds[1 + i], i) < 0)
			return -1;
	}
	return r->m.flags & INIT_EXEC_TTY ? ioctl(0, TIOCSCTTY, 0) : 0;
}

/* Raw calls: a libc's versions talk to threads, of which a vfork child has none. */
static int take_ids(const struct request *r)
{
	struct rlimit nproc = {r->m.nproc, r->m.nproc};
	if (r->m.nproc && syscall(SYS_prlimit64, 0, RLIMIT_NPROC, &nproc, NULL) < 0)
		return -1;
	bool root = r->m.uid == 0;
	if (syscall(SYS_setgroups, root ? 1 : 0, root ? &agent_group : NULL) < 0)
		return -1;
	if (syscall(SYS_setresgid, r->m.gid, r->m.gid, r->m.gid) < 0)
		return -1;
	return (int)syscall(SYS_setresuid, r->m.uid, r->m.uid, r->m.uid);
}

static int set_caps(uint64_t keep)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	uint32_t lo = (uint32_t)keep, hi = (uint32_t)(keep >> 32);
	struct __user_cap_data_struct d[2] = {{lo, lo, lo}, {hi, hi, hi}};
	return (int)syscall(SYS_capset, &h, d);
}

/* The bounding set is empty already.  Securebits are final too, unless root's policy lets inner
 * root keep something: then they become final here. */
static int drop_caps(const struct request *r)
{
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -1;
	if (!(r->m.flags & INIT_EXEC_PACKAGES) || r->m.uid != 0) {
		if (prctl(PR_GET_SECUREBITS) != CAPS_SECUREBITS_FINAL &&
		        prctl(PR_SET_SECUREBITS, CAPS_SECUREBITS_FINAL) < 0)
			return -1;
		return set_caps(0);
	}
	for (int cap = 0; cap < 64; cap++) {
		if (CAPS_PACKAGES & CAPS_BIT(cap) &&
		        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			return -1;
	}
	if (prctl(PR_SET_SECUREBITS, CAPS_SECUREBITS_PACKAGES) < 0)
		return -1;
	return set_caps(CAPS_PACKAGES);
}

/* agentbox-acp, which starts argv[0] as it finds it; one that cannot be started is told as if it
 * were started here. */
static void exec_acp(const struct request *r)
{
	if (!strchr(r->argv[0], '/') || access(r->argv[0], X_OK) == 0)
		syscall(SYS_execveat, PROGRAM_FD, "", r->argv, r->env, AT_EMPTY_PATH);
}

/* As execvp, but in the PATH of the environment given, and never through a shell. */
static void exec_program(const struct request *r)
{
	static char path[PATH_BUF];
	const char *name = r->argv[0], *dirs = "/usr/local/bin:/usr/bin:/bin";
	if (strchr(name, '/')) {
		execve(name, r->argv, r->env);
		return;
	}
	for (char **v = r->env; *v; v++) {
		if (strncmp(*v, "PATH=", 5) == 0)
			dirs = *v + 5;
	}
	int error = ENOENT;
	size_t len = strlen(name);
	for (const char *dir = dirs; *name && dir;) {
		size_t n = strcspn(dir, ":");
		if (n > 0 && n + 1 + len + 1 <= sizeof(path)) {
			memcpy(path, dir, n);
			path[n] = '/';
			memcpy(path + n + 1, name, len + 1);
			execve(path, r->argv, r->env);
			/* the most telling one: a file that is there and may not run */
			if (errno != ENOENT && errno != ENOTDIR)
				error = errno;
		}
		dir = dir[n] ? dir + n + 1 : NULL;
	}
	errno = error;
}

static _Noreturn void fail(struct request *r, enum init_stage stage)
{
	r->error = errno;
	r->stage = stage;
	_exit(127);
}

static _Noreturn __attribute__((noinline)) void child(struct request *r)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (setsid() < 0)
		fail(r, INIT_STAGE_SESSION);
	if (take_stdio(r) < 0)
		fail(r, INIT_STAGE_STDIO);
	if (take_ids(r) < 0)
		fail(r, INIT_STAGE_IDS);
	if (drop_caps(r) < 0)
		fail(r, INIT_STAGE_CAPS);
	if (chdir(r->cwd) < 0)
		fail(r, INIT_STAGE_CWD);
	bool acp = r->m.flags & INIT_EXEC_ACP;
	if (acp && dup3(r->fds[4], PROGRAM_FD, O_CLOEXEC) < 0)
		fail(r, INIT_STAGE_STDIO);
	if (syscall(SYS_close_range, acp ? PROGRAM_FD + 1 : PROGRAM_FD, ~0U, 0) < 0)
		fail(r, INIT_STAGE_STDIO);
	if (acp)
		exec_acp(r);
	else
		exec_program(r);
	fail(r, INIT_STAGE_EXEC);
}

/* ---- requests ---- */

/* The pid, or 0 with stage and error set. */
static pid_t spawn(struct request *r)
{
	/* The child says in `r` what failed.  It neither allocates nor locks. */
	pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
	/* Before Linux 6.3 only our children are in the jail's time namespace, and who is to move
	 * into another one may not share our memory. */
	if (pid < 0 && errno == EINVAL)
		pid = (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, 0);
	if (pid == 0)
		child(r); /* NOLINT(clang-analyzer-unix.Vfork) */
	if (pid < 0) {
		r->error = errno;
		r->stage = INIT_STAGE_FORK;
		return 0;
	}
	if (!r->error)
		return pid;
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	return 0;
}

static int fds_of(const struct init_exec *m)
{
	return REQUEST_FDS_MIN + !!(m->flags & INIT_EXEC_ACP) + !!(m->flags & INIT_EXEC_GIVEN);
}

/* In place of one of that name, or behind the others. */
static void put_env(char **env, char *pair)
{
	size_t name = strcspn(pair, "="), i = 0;
	while (env[i] && !(strncmp(env[i], pair, name) == 0 && env[i][name] == '='))
		i++;
	if (!env[i])
		env[i + 1] = NULL;
	env[i] = pair;
}

/* Those pages are the child's until its exec, and nobody's afterwards. */
static char given[INIT_GIVEN_BYTES];

static int take_given(const struct request *r)
{
	if (!(r->m.flags & INIT_EXEC_GIVEN))
		return 0;
	ssize_t n = pread(r->fds[fds_of(&r->m) - 1], given, sizeof(given) - 1, 0);
	if (n <= 0 || given[n - 1] != '\0')
		return -1;
	int count = 0;
	for (char *p = given; p < given + n && count < INIT_GIVEN; p += strlen(p) + 1, count++)
		put_env(r->env, p);
	return 0;
}

static pid_t map_and_spawn(struct request *r)
{
	static char *argv[LIMIT_EXEC_ARGS + 1], *env[LIMIT_EXEC_ENVS + INIT_GIVEN + 1];
	struct stat st;
	r->stage = INIT_STAGE_REQUEST;
	r->error = EBADMSG;
	if (fstat(r->fds[0], &st) < 0) {
		r->error = errno;
		return 0;
	}
	if (st.st_size <= 0 || st.st_size > LIMIT_EXEC_BLOB + (off_t)sizeof(struct exec_head))
		return 0;
	size_t n = (size_t)st.st_size;
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE, r->fds[0], 0);
	if (p == MAP_FAILED) {
		r->error = errno;
		return 0;
	}
	pid_t pid = 0;
	r->argv = argv;
	r->env = env;
	if (exec_unpack(p, n, argv, env, &r->cwd) == 0 && take_given(r) == 0) {
		r->stage = INIT_STAGE_NONE;
		r->error = 0;
		pid = spawn(r);
		explicit_bzero(given, sizeof(given));
	}
	munmap(p, n);
	return pid;
}

static void start(const struct init_exec *m, const int *fds, int nfds)
{
	struct request *r = request;
	if (request_error) {
		report(&(struct init_exited){.exec = m->exec,
		        .error = request_error,
		        .stage = INIT_STAGE_REQUEST,
		        .code = -1});
		return;
	}
	*r = (struct request){.m = *m};
	memcpy(r->fds, fds, (size_t)nfds * sizeof(r->fds[0]));
	int slot = 0;
	while (slot < EXECS && running[slot].pid)
		slot++;
	if (slot == EXECS) {
		r->stage = INIT_STAGE_REQUEST;
		r->error = EAGAIN;
	} else {
		running[slot].pid = map_and_spawn(r);
		running[slot].exec = m->exec;
	}
	if (r->error)
		report(&(struct init_exited){
		        .exec = m->exec, .error = r->error, .stage = r->stage, .code = -1});
}

static void forward_signal(const struct init_signal *m)
{
	for (int i = 0; i < EXECS; i++) {
		if (running[i].pid && running[i].exec == m->exec && m->sig > 0)
			kill(-running[i].pid, m->sig); /* each is the leader of its session */
	}
}

static void serve(const union packet *p, size_t n, const int *fds, int nfds)
{
	if (n < sizeof(p->head) || p->head.magic != MSG_MAGIC || p->head.size != n)
		return;
	if (p->head.type == INIT_EXEC && n == sizeof(p->exec) && nfds == fds_of(&p->exec))
		start(&p->exec, fds, nfds);
	else if (p->head.type == INIT_SIGNAL && n == sizeof(p->signal))
		forward_signal(&p->signal);
	else if (p->head.type == INIT_KILL_ALL)
		kill(-1, SIGKILL); /* everyone but us */
}

static void receive(void)
{
	union packet p;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(MSG_FDS * sizeof(int))];
	} control;
	struct iovec io = {&p, sizeof(p)};
	struct msghdr msg = {.msg_iov = &io,
	        .msg_iovlen = 1,
	        .msg_control = &control,
	        .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(CONTROL, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0 && passes(errno))
		return;
	if (n <= 0) {
		kill(-1, SIGKILL);
		_exit(0); /* the kernel ends the rest of the pid namespace */
	}
	int fds[MSG_FDS], nfds = 0;
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		nfds = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(c), (size_t)nfds * sizeof(int));
	}
	serve(&p, (size_t)n, fds, nfds);
	for (int i = 0; i < nfds; i++)
		close(fds[i]);
}

static pid_t next_dead(int *status)
{
	pid_t pid;
	do {
		pid = waitpid(-1, status, WNOHANG | __WALL);
	} while (pid < 0 && errno == EINTR);
	return pid;
}

static void reap(void)
{
	int status;
	pid_t pid;
	while ((pid = next_dead(&status)) > 0) {
		for (int i = 0; i < EXECS; i++) {
			if (running[i].pid != pid)
				continue;
			running[i].pid = 0;
			bool exited = WIFEXITED(status);
			report(&(struct init_exited){.exec = running[i].exec,
			        .code = exited ? WEXITSTATUS(status) : -1,
			        .sig = exited ? 0 : WTERMSIG(status)});
		}
	}
}

static void on_child(int sig)
{
	(void)sig; /* it only interrupts ppoll */
}

/* What agentboxd ignores must not be ignored by every program of the jail. */
static void reset_signals(void)
{
	for (int sig = 1; sig < 32; sig++)
		(void)signal(sig, SIG_DFL);
	struct sigaction act = {.sa_handler = on_child};
	sigaction(SIGCHLD, &act, NULL);
	sigset_t block;
	sigemptyset(&block);
	sigaddset(&block, SIGCHLD);
	sigprocmask(SIG_SETMASK, &block, NULL);
}

int main(void)
{
	/* Both were set before exec; exec keeps them, and this costs nothing should it ever not. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	umask(022);
	request = mmap(
	        NULL, sizeof(*request), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (request == MAP_FAILED) /* who wants something started is told */
		request_error = errno;
	reset_signals();
	sigset_t none;
	sigemptyset(&none);
	for (;;) {
		struct pollfd p = {.fd = CONTROL, .events = POLLIN};
		int n = ppoll(&p, 1, NULL, &none);
		reap();
		if (n > 0)
			receive();
	}
}
