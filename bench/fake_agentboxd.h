/*
 * fake_agentboxd.h - a real agentbox-supervisor below an agentboxd that makes no
 * jails: programs are pipes that end after a while.  For what the engine itself costs: HTTP,
 * scheduler, event log, store, journals, all on the disk as ever.
 *
 * Speaks proto/jail.h in a thread of its own; root, like agentboxd.
 */
#ifndef BENCH_FAKE_AGENTBOXD_H
#define BENCH_FAKE_AGENTBOXD_H

#include "base/ids.h"
#include "bench/rig.h"
#include "policy/config_yaml.h"
#include "policy/policy.h"
#include "proto/build.h"
#include "proto/children.h"
#include "proto/jail.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

enum { FAKE_JAILS = 64, FAKE_HIGH = 64 /* descriptors are put above their final places */ };

struct fake_jail {
	uint64_t jail; /* 0: free */
	int64_t due_us;
	int fds[3]; /* the program's ends; -1: closed */
};

struct fake {
	struct rig rig; /* dir, socket, bin and the supervisor's pid: for rig.h's requests */
	int control;
	pthread_t thread;
	atomic_int min_ms, max_ms; /* how long programs live */
	atomic_bool stopping;
	uint64_t last;
	unsigned seed;
	struct fake_jail jails[FAKE_JAILS];
};

static inline void fake_send(struct fake *f, void *m, size_t size, const int *fds, int n)
{
	for (int rc; (rc = msg_send(f->control, m, size, fds, n)) < 0 && !f->stopping;) {
		struct pollfd p = {.fd = f->control, .events = POLLOUT};
		if (!msg_later(rc) || poll(&p, 1, 10000) != 1)
			die("the supervisor does not listen");
	}
}

static inline void fake_close(struct fake_jail *x)
{
	for (int i = 0; i < 3; i++) {
		fd_close(x->fds[i]);
		x->fds[i] = -1;
	}
}

static inline struct fake_jail *fake_find(struct fake *f, uint64_t jail)
{
	for (int i = 0; i < FAKE_JAILS; i++)
		if (f->jails[i].jail == jail)
			return &f->jails[i];
	return NULL;
}

static inline void fake_make(struct fake *f, struct jail_reply *r)
{
	struct fake_jail *x = fake_find(f, 0);
	int in[2], out[2], err[2];
	if (!x || pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 ||
	        pipe2(err, O_CLOEXEC) < 0)
		die("pipes");
	int theirs[3] = {in[1], out[0], err[0]};
	for (int i = 0; i < 3; i++)
		(void)fcntl(theirs[i], F_SETFL, O_NONBLOCK);
	int min = f->min_ms, span = f->max_ms - min + 1;
	f->seed = f->seed * 1103515245u + 12345u;
	*x = (struct fake_jail){.jail = ++f->last,
	        .due_us = clock_mono_us() + 1000 * (int64_t)(min + (int)(f->seed >> 8) % span),
	        .fds = {in[0], out[1], err[1]}};
	r->jail = r->exec = x->jail;
	fake_send(f, r, sizeof(*r), theirs, 3);
	for (int i = 0; i < 3; i++)
		fd_close(theirs[i]);
}

static inline void fake_gone(struct fake *f, uint64_t jail)
{
	struct fake_jail *x = fake_find(f, jail);
	struct jail_gone g = {.head.type = JAIL_GONE, .jail = jail};
	if (!x)
		return;
	fake_close(x);
	x->jail = 0;
	fake_send(f, &g, sizeof(g), NULL, 0);
}

static inline void fake_answer(struct fake *f, const void *m)
{
	const struct jail_simple *q = m;
	static struct jail_reply r;
	r = (struct jail_reply){.head = {.type = JAIL_REPLY, .req = q->head.req},
	        .layers = UINT32_MAX >> (32 - LAYER_COUNT)};
	if (q->head.type == JAIL_MAKE) {
		fake_make(f, &r);
		return;
	}
	fake_send(f, &r, sizeof(r), NULL, 0);
	if (q->head.type == JAIL_KILL)
		fake_gone(f, q->jail);
}

/* Those whose time is over; microseconds to the next one, or -1. */
static inline int64_t fake_end_due(struct fake *f)
{
	int64_t now = clock_mono_us(), next = -1;
	for (int i = 0; i < FAKE_JAILS; i++) {
		struct fake_jail *x = &f->jails[i];
		if (!x->jail || x->fds[1] < 0)
			continue;
		if (x->due_us > now) {
			next = next < 0 || x->due_us - now < next ? x->due_us - now : next;
			continue;
		}
		struct jail_exited e = {.head.type = JAIL_EXITED, .jail = x->jail, .exec = x->jail};
		(void)!write(x->fds[1], "done\n", 5);
		fake_close(x);
		fake_send(f, &e, sizeof(e), NULL, 0);
	}
	return next;
}

static inline void *fake_run(void *arg)
{
	struct fake *f = arg;
	_Alignas(16) static char bytes[MSG_MAX];
	for (;;) {
		int64_t us = fake_end_due(f);
		struct pollfd p = {.fd = f->control, .events = POLLIN};
		struct timespec t = {us / 1000000, us % 1000000 * 1000};
		if (ppoll(&p, 1, us < 0 ? NULL : &t, NULL) < 1)
			continue;
		int fds[MSG_FDS], n = msg_recv(f->control, bytes, fds);
		if (n == 0 || (n < 0 && n != -EAGAIN))
			return NULL; /* the supervisor has ended */
		for (int i = 0; n > 0 && i < MSG_FDS; i++)
			fd_close(fds[i]);
		if (n > 0)
			fake_answer(f, bytes);
	}
}

static inline _Noreturn void fake_refused(const struct err *e)
{
	fprintf(stderr, "bench: %s\n", e->text);
	exit(111);
}

static inline int fake_policies(uint32_t max_runs)
{
	size_t n = sizeof(struct policy_set) + sizeof(struct policy);
	auto_free struct policy_set *s = xcalloc(1, n);
	s->magic = POLICY_SET_MAGIC;
	s->count = 1;
	s->size = n;
	s->generation = 1;
	static const struct idents nobody;
	struct err e;
	if (config_defaults(&nobody, &s->config, &e) < 0)
		fake_refused(&e);
	s->config.max_runs = max_runs;
	s->config.max_queued = 2000;
	(void)str_copy(s->policies[0].name, NAME_MAX_LEN, "default");
	(void)str_copy(s->policies[0].source, sizeof(s->policies[0].source), "built-in");
	s->policies[0].ninsns = 1;
	s->policies[0].bpf[0] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0x7fff0000u);
	if (policy_set_check(s, n, &e) < 0)
		fake_refused(&e);
	int fd = fd_sealed_memfd("policies", s, n);
	if (fd < 0)
		die("policies");
	return fd;
}

static inline int fake_listen(const char *path)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	(void)str_copy(a.sun_path, sizeof(a.sun_path), path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 1024) < 0)
		die(path);
	return fd;
}

static inline int fake_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die(path);
	return fd;
}

static inline pid_t fake_spawn(struct fake *f, const int *fds, int n)
{
	auto_free char *program = xasprintf("%s/agentbox-supervisor", f->rig.bin);
	auto_free char *id = xasprintf("%d", ID_SUPERVISOR);
	const char *argv[] = {program, "--build", build_id(), "--uid", id, "--gid", id,
	        "--log-level", "warn", NULL};
	posix_spawn_file_actions_t fa;
	posix_spawn_file_actions_init(&fa);
	for (int i = 0; i < n; i++) {
		int high = fcntl(fds[i], F_DUPFD_CLOEXEC, FAKE_HIGH);
		if (high < 0)
			die("descriptors");
		posix_spawn_file_actions_adddup2(&fa, high, CHILD_CONTROL + i);
	}
	pid_t pid = rig_spawn(argv, &fa);
	posix_spawn_file_actions_destroy(&fa);
	return pid;
}

/* `harness` is offered under the name "bench". */
static inline void fake_start(struct fake *f, const char *harness, uint32_t max_runs)
{
	struct rig *g = &f->rig;
	rig_dir(g);
	auto_free char *state = xasprintf("%s/state", g->dir);
	auto_free char *harnesses = xasprintf("%s/harnesses", g->dir);
	auto_free char *file = xasprintf("%s/bench.md", harnesses);
	if (mkdir(harnesses, 0755) < 0 || mkdir(state, 0700) < 0 ||
	        chown(state, ID_SUPERVISOR, ID_SUPERVISOR) < 0)
		die(g->dir);
	rig_write(file, harness);
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		die("socketpair");
	int none = fake_open("/dev/null");
	int fds[CHILD_FDS - CHILD_CONTROL];
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = none; /* as where a directory is not used */
	fds[0] = pair[1];
	fds[CHILD_LISTEN - CHILD_CONTROL] = fake_listen(g->socket);
	fds[CHILD_STATE - CHILD_CONTROL] = fake_open(state);
	fds[CHILD_SHARE - CHILD_CONTROL] = fake_open(".");
	fds[CHILD_HARNESS_DIRS - CHILD_CONTROL] = fake_open(harnesses);
	f->control = pair[0];
	rig_own(g, fake_spawn(f, fds, CHILD_FDS - CHILD_CONTROL));
	fd_close(pair[1]);
	int set = fake_policies(max_runs);
	struct jail_simple m = {.head.type = JAIL_POLICIES};
	fake_send(f, &m, sizeof(m), &set, 1);
	fd_close(set);
	if (pthread_create(&f->thread, NULL, fake_run, f) != 0)
		die("thread");
}

static inline void fake_stop(struct fake *f)
{
	f->stopping = true;
	(void)shutdown(f->control, SHUT_RDWR); /* as if agentboxd were gone */
	(void)pthread_join(f->thread, NULL);
	rig_stop(&f->rig);
	fd_close(f->control);
}

#endif
