#include "jail/launch.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/mem.h"
#include "jail/enter.h"
#include "jail/etc.h"
#include "jail/stdio.h"
#include "jail/sysc.h"
#include "jail/view.h"
#include "proto/msg.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif

enum {
	CHILD_STACK = 32 << 10, /* enter.c needs about 2 KiB */
	PROGRAM_MAX = 16 << 20, /* agentbox-init is 40 KiB; a sanitized worker has megabytes */
	DEFAULT_NOFILE = 65536,
	STACK_BYTES = 8 << 20,
	MEMLOCK_BYTES = 64 << 10,
	SIGPENDING = 4096, /* queued signals and POSIX timers */
	WORKER_NOFILE = 256,
};

void launch_stdio_close(struct launch_stdio *s)
{
	fd_close(take_fd(s->in));
	fd_close(take_fd(s->out));
	fd_close(take_fd(s->err));
}

/* ---- programs ---- */

static int new_memfd(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (fd < 0 && errno == EINVAL) /* before 6.3 every memfd may be executed */
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd;
}

int launch_load(int dirfd, const char *name, struct err *e)
{
	auto_close int file = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return err_errno(e, "program %s", name);
	auto_free char *bytes = NULL;
	size_t n = 0;
	int r = fd_slurp(file, PROGRAM_MAX, &bytes, &n);
	if (r < 0)
		return err_set(e, r, "program %s: %s", name, strerror(-r));
	auto_close int fd = new_memfd(name);
	if (fd < 0)
		return err_errno(e, "program %s: memfd (remedy: sysctl vm.memfd_noexec=0)", name);
	r = fd_write_all(fd, bytes, n);
	if (r < 0)
		return err_set(e, r, "program %s: memfd: %s", name, strerror(-r));
	/* Executable and not readable by its uid: the kernel then starts it non-dumpable, before
	 * its first instruction. */
	if (fchmod(fd, 0111) < 0 ||
	        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) <
	                0)
		return err_errno(e, "program %s: sealing", name);
	return take_fd(fd);
}

/* ---- requests to PID 1 ---- */

static int make_stdio(
        const struct launched *j, const struct launch_program *p, struct stdio *ret, struct err *e)
{
	uint32_t base = j->kit->base;
	uint32_t id = base + (p->flags & JAIL_MAKE_ROOT ? 0 : ID_INNER_AGENT);
	if (p->flags & JAIL_MAKE_TTY)
		return stdio_tty(j->kit->mounts[KIT_DEVPTS], id, base + ID_INNER_TTY, ret, e);
	return stdio_pipes(id, id, ret, e);
}

int launch_exec(const struct launched *j, const struct launch_program *p, struct launch_stdio *ret,
        struct err *e)
{
	auto_stdio struct stdio s = STDIO_NONE;
	int r = make_stdio(j, p, &s, e);
	if (r < 0)
		return r;
	bool root = p->flags & JAIL_MAKE_ROOT;
	struct init_exec m = {.head.type = INIT_EXEC,
	        .exec = p->exec,
	        .uid = root ? 0 : ID_INNER_AGENT,
	        .gid = root ? 0 : ID_INNER_AGENT,
	        .nproc = j->nproc};
	if (p->flags & JAIL_MAKE_TTY)
		m.flags |= INIT_EXEC_TTY;
	if (root && j->policy_flags & POLICY_INNER_ROOT_PACKAGES)
		m.flags |= INIT_EXEC_PACKAGES;
	int fds[6] = {p->memfd, s.theirs[0], s.theirs[1], s.theirs[2]}, nfds = 4;
	if (p->flags & JAIL_MAKE_ACP) {
		m.flags |= INIT_EXEC_ACP;
		fds[nfds++] = p->acp;
	}
	if (p->flags & JAIL_MAKE_SECRETS) {
		m.flags |= INIT_EXEC_GIVEN;
		fds[nfds++] = p->given;
	}
	r = msg_send(j->control, &m, sizeof(m), fds, nfds);
	if (r < 0)
		return err_set(e, r, "the jail's PID 1 cannot be asked: %s", strerror(-r));
	ret->in = take_fd(s.ours[0]);
	ret->out = take_fd(s.ours[1]);
	ret->err = take_fd(s.ours[2]);
	return 0;
}

int launch_signal(const struct launched *j, uint64_t exec, int sig, struct err *e)
{
	struct init_signal m = {.head.type = INIT_SIGNAL, .exec = exec, .sig = sig};
	int r = msg_send(j->control, &m, sizeof(m), NULL, 0);
	return r < 0 ? err_set(e, r, "the jail's PID 1 cannot be asked: %s", strerror(-r)) : 0;
}

int launch_kill_all(const struct launched *j, struct err *e)
{
	struct msg_head m = {.type = INIT_KILL_ALL};
	int r = msg_send(j->control, &m, sizeof(m), NULL, 0);
	return r < 0 ? err_set(e, r, "the jail's PID 1 cannot be asked: %s", strerror(-r)) : 0;
}

/* ---- the child ---- */

static void add_rlimit(struct enter *c, int resource, uint64_t soft, uint64_t hard)
{
	c->rlimits[c->nrlimits++] =
	        (struct enter_rlimit){.resource = resource, .soft = soft, .hard = hard};
}

static void add_common_rlimits(struct enter *c)
{
	/* 1, not 0: with a core_pattern that is a pipe, 0 is ignored and 1 means "no dump". */
	add_rlimit(c, RLIMIT_CORE, 1, 1);
	add_rlimit(c, RLIMIT_MSGQUEUE, 0, 0);
	add_rlimit(c, RLIMIT_RTPRIO, 0, 0);
	add_rlimit(c, RLIMIT_NICE, 0, 0);
	add_rlimit(c, RLIMIT_MEMLOCK, MEMLOCK_BYTES, MEMLOCK_BYTES);
	add_rlimit(c, RLIMIT_SIGPENDING, SIGPENDING, SIGPENDING);
	add_rlimit(c, RLIMIT_STACK, STACK_BYTES, RLIM_INFINITY);
}

static void set_rlimits(struct enter *c, const struct limits *l)
{
	uint64_t nofile = l->nofile ? l->nofile : DEFAULT_NOFILE;
	add_common_rlimits(c);
	add_rlimit(c, RLIMIT_NOFILE, nofile, nofile);
	if (l->file_bytes)
		add_rlimit(c, RLIMIT_FSIZE, l->file_bytes, l->file_bytes);
}

/* Clones the child described by `c` into `cgroup`, and returns when it has exec'd or died.  No
 * signal handler of ours runs in the child: it would run on our memory. */
static int run_child(struct enter *c, uint64_t flags, int cgroup, int *ret_pidfd, struct err *e)
{
	char stack[CHILD_STACK] __attribute__((aligned(16)));
	int pidfd = -1;
	/* No exit signal: only who holds the pidfd collects it (with __WALL). */
	struct clone_args a = {.flags = flags | CLONE_VM | CLONE_VFORK | CLONE_PIDFD |
	                                CLONE_INTO_CGROUP | CLONE_CLEAR_SIGHAND,
	        .pidfd = (uintptr_t)&pidfd,
	        .stack = (uintptr_t)stack,
	        .stack_size = sizeof(stack),
	        .cgroup = (uint64_t)cgroup};
	sigset_t all, old;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	long pid = sysc_clone(&a, enter_main, c);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (pid < 0)
		return err_set(e, (int)pid,
		        "layer pidns: clone3: %s (remedy: user.max_pid_namespaces, pids limits of "
		        "agentboxd's own cgroup)",
		        strerror((int)-pid));
	if (c->error || !enter_last_step(c->step)) {
		while (waitpid((pid_t)pid, NULL, __WALL) < 0 && errno == EINTR)
			;
		fd_close(pidfd);
		int r = c->error ? err_set(e, -c->error, "%s: %s", enter_step_name(c->step),
		                           strerror(c->error))
		                 : err_set(e, -EIO, "%s: the child was killed",
		                           enter_step_name(c->step));
		return err_not_theirs(e, r);
	}
	*ret_pidfd = pidfd;
	return (int)pid;
}

/* ---- a jail ---- */

static uint32_t layers_of(const struct launch_spec *spec)
{
	const struct limits *l = spec->limits;
	uint32_t layers =
	        layers_of_kind(LAYER_KIND_ISOLATION) | cgroup_limits_in_force(spec->kit->tree);
	if (!landlock_abi())
		layers &= ~LAYER_BIT(LAYER_LANDLOCK);
	if (!(spec->policy->flags & POLICY_PRIVATE_FILES))
		layers &= ~LAYER_BIT(LAYER_INODES);
	/* The size of a tmpfs is a limit. */
	bool memory = spec->workspace < 0 && spec->home < 0;
	if ((l->disk_bytes || l->inodes) && (memory || spec->disk_held))
		layers |= LAYER_BIT(LAYER_LIMIT_DISK);
	return layers;
}

/* RLIMIT_NPROC counts the processes of one uid, which is the jail's alone. */
static void stand_in(struct launched *j, const struct limits *l)
{
	if (j->layers & LAYER_BIT(LAYER_LIMIT_PIDS) || !l->pids)
		return;
	j->nproc = l->pids < UINT32_MAX ? (uint32_t)l->pids : UINT32_MAX;
	j->fallback |= LAYER_BIT(LAYER_LIMIT_PIDS);
}

static int check_layers(const struct policy *p, uint32_t layers, struct err *e)
{
	uint32_t missing = p->required & ~layers;
	for (int l = 0; l < LAYER_COUNT; l++) {
		if (missing & LAYER_BIT(l))
			return err_set(e, -ENOPKG,
			        "policy '%s' requires %s (%s), which this jail lacks", p->name,
			        layer_name((enum layer)l), layer_lack((enum layer)l));
	}
	return 0;
}

static void describe_child(
        const struct launch_spec *spec, const struct view *v, int control, struct enter *c)
{
	const struct kit *k = spec->kit;
	bool packages = spec->policy->flags & POLICY_INNER_ROOT_PACKAGES;
	*c = (struct enter){.netns = k->netns,
	        .ipcns = k->ipcns,
	        .utsns = k->utsns,
	        .mntns = k->mntns,
	        .userns = k->userns,
	        .make_root = true,
	        .strict_proc = spec->policy->flags & POLICY_STRICT_PROC,
	        .masks = spec->root->masks,
	        .who = {.uid = ID_INNER_INIT,
	                .gid = ID_INNER_INIT,
	                .keep = CAPS_INIT | (packages ? CAPS_PACKAGES : 0),
	                .securebits = packages ? CAPS_SECUREBITS : CAPS_SECUREBITS_FINAL},
	        .filter = spec->policy->bpf,
	        .nfilter = (uint16_t)spec->policy->ninsns,
	        .control = control,
	        .program = spec->init_memfd,
	        .name = "agentbox-init"};
	c->overlay = &v->overlay;
	memcpy(c->mounts, v->mounts, sizeof(c->mounts));
	c->nmounts = v->n;
	c->landlock = landlock_abi();
	memcpy(c->rules, v->rules, sizeof(c->rules));
	c->nrules = v->nrules;
	set_rlimits(c, spec->limits);
	if ((spec->policy->flags & POLICY_PRIVATE_FILES) && spec->agent >= 0)
		c->own = "/opt/agent";
}

/* PID 1 with its first request already in its socket. */
static int start(const struct launch_spec *spec, struct launched *j, struct err *e)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, "socket to PID 1");
	j->control = pair[0];
	auto_close int theirs = pair[1];
	int r = fd_set_nonblock(j->control, 1);
	if (r < 0)
		return err_set(e, r, "socket to PID 1: %s", strerror(-r));
	if (spec->program) {
		r = launch_exec(j, spec->program, &j->stdio, e);
		if (r < 0)
			return r;
	}
	struct view v;
	r = view_make(spec, &v, e);
	if (r < 0)
		return r;
	struct enter c;
	describe_child(spec, &v, theirs, &c);
	r = run_child(&c, CLONE_NEWPID, j->kit->cgroup.dirfd, &j->pidfd, e);
	view_done(&v);
	if (r < 0)
		return r;
	j->pid = r;
	return 0;
}

int launch_jail(const struct launch_spec *spec, struct launched *ret, struct err *e)
{
	int64_t begun = clock_mono_us();
	struct launched j = {.pid = -1,
	        .pidfd = -1,
	        .control = -1,
	        .kit = spec->kit,
	        .policy_flags = spec->policy->flags,
	        .layers = layers_of(spec),
	        .stdio = LAUNCH_STDIO_NONE};
	stand_in(&j, spec->limits);
	int r = check_layers(spec->policy, j.layers, e);
	if (r == 0 && spec->policy->ninsns == 0)
		r = err_set(
		        e, -EINVAL, "layer seccomp: policy '%s' has no filter", spec->policy->name);
	if (r == 0)
		r = kit_fit(spec->kit, spec->limits, e);
	if (r == 0)
		r = start(spec, &j, e);
	if (r < 0) {
		launched_free(&j);
		return err_wrap(e, "jail");
	}
	j.make_us = clock_mono_us() - begun;
	*ret = j;
	return 0;
}

int launch_reap(struct launched *j)
{
	struct rusage u;
	if (j->pid < 0)
		return 0;
	pid_t r = wait4(j->pid, NULL, __WALL | WNOHANG, &u);
	if (r == 0)
		return -EAGAIN;
	if (r < 0)
		return -errno;
	j->pid = -1;
	j->rss_peak_bytes = (uint64_t)u.ru_maxrss << 10;
	j->cpu_us = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 +
	            (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
	return 0;
}

void launched_free(struct launched *j)
{
	fd_close(take_fd(j->control));
	kit_free(take(j->kit)); /* kills everything that is left in the cgroup */
	if (j->pid > 0) {
		while (waitpid(j->pid, NULL, __WALL) < 0 && errno == EINTR)
			;
		j->pid = -1;
	}
	fd_close(take_fd(j->pidfd));
	launch_stdio_close(&j->stdio);
}

/* ---- a file worker ---- */

int launch_worker(
        const struct launched *j, int worker_memfd, struct launch_worker *ret, struct err *e)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, "socket to the file worker");
	auto_close int ours = pair[0], theirs = pair[1];
	int r = fd_set_nonblock(ours, 1);
	if (r < 0)
		return err_set(e, r, "socket to the file worker: %s", strerror(-r));
	struct enter c = {.netns = j->kit->netns,
	        .ipcns = j->kit->ipcns,
	        .utsns = j->kit->utsns,
	        .mntns = j->kit->mntns,
	        .userns = j->kit->userns,
	        .who = {.uid = ID_INNER_AGENT,
	                .gid = ID_INNER_AGENT,
	                .keep = 0,
	                .securebits = CAPS_SECUREBITS_FINAL},
	        .landlock = landlock_abi(),
	        .rules = {{"/workspace", LANDLOCK_KEEP, false},
	                {"/home/agent", LANDLOCK_KEEP, false}},
	        .nrules = 2,
	        .control = theirs,
	        .program = worker_memfd,
	        .name = "agentbox-worker"};
	add_common_rlimits(&c);
	add_rlimit(&c, RLIMIT_NOFILE, WORKER_NOFILE, WORKER_NOFILE);
	if (j->kit->limits.file_bytes)
		add_rlimit(&c, RLIMIT_FSIZE, j->kit->limits.file_bytes, j->kit->limits.file_bytes);
	int pidfd = -1;
	r = run_child(&c, CLONE_NEWPID, j->kit->tree->workers, &pidfd, e);
	if (r < 0)
		return err_wrap(e, "file worker");
	*ret = (struct launch_worker){.socket = take_fd(ours), .pidfd = pidfd, .pid = r};
	return 0;
}

void launch_worker_kill(const struct launch_worker *w)
{
	if (w->pid > 0)
		(void)kill(w->pid, SIGKILL); /* ours until we collect it: it cannot be reused */
}

void launch_worker_end(struct launch_worker *w)
{
	if (w->pid <= 0)
		return;
	launch_worker_kill(w);
	while (waitpid(w->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	w->pid = -1;
	fd_close(take_fd(w->socket));
	fd_close(take_fd(w->pidfd));
}
