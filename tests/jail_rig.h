/*
 * jail_rig.h - real jails for tests: a policy made by hand, one
 * template, and a way to run a shell line in a jail and read what it said.
 *
 * Needs root.  Uses the highest uid blocks, which a daemon leases last.
 */
#ifndef TESTS_JAIL_RIG_H
#define TESTS_JAIL_RIG_H

#include "base/fd.h"
#include "base/ids.h"
#include "base/mem.h"
#include "jail/launch.h"
#include "proto/exec.h"
#include "proto/msg.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <linux/seccomp.h>

struct rig {
	struct policy policy;
	struct cgroup_tree tree;
	struct template root;
	int init, worker; /* memfds */
	struct closer closer;
	uint32_t made;
};

struct rig_out {
	char text[64 << 10]; /* stdout, then stderr */
	int code, sig, error, stage;
	bool answered; /* INIT_EXITED came */
};

/* The policy's filter allows everything: what these tests prove is what holds without one. */
static inline void rig_policy(struct policy *p)
{
	static const struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	*p = (struct policy){.name = "rig",
	        .required = layers_of_kind(LAYER_KIND_ISOLATION) & ~LAYER_BIT(LAYER_INODES),
	        .limits = {.pids = 64,
	                .nofile = 4096,
	                .tmp_bytes = 64 << 20,
	                .shm_bytes = 64 << 20,
	                .disk_bytes = 64 << 20,
	                .inodes = 4096},
	        .ninsns = 1};
	p->bpf[0] = allow[0];
}

static inline int rig_open(struct rig *r, struct err *e)
{
	char bin[4096], name[64];
	rig_policy(&r->policy);
	r->closer = (struct closer)CLOSER_NONE;
	int closer = closer_start(&r->closer, e);
	if (closer < 0)
		return closer;
	ssize_t n = readlink("/proc/self/exe", bin, sizeof(bin) - 1);
	bin[n > 0 ? n : 0] = '\0';
	for (int i = 0; i < 3; i++) { /* BUILD/tests/unit/name: programs are in BUILD/bin */
		char *slash = strrchr(bin, '/');
		if (slash)
			*slash = '\0';
	}
	auto_free char *dir = xasprintf("%s/bin", bin);
	auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(e, "%s", dir);
	r->init = launch_load(fd, "agentbox-init", e);
	r->worker = r->init < 0 ? -1 : launch_load(fd, "agentbox-worker", e);
	if (r->worker < 0)
		return r->worker;
	(void)snprintf(name, sizeof(name), "agentbox-rig-%d", getpid());
	int ret = cgroup_tree_open(name, &r->tree, e);
	return ret < 0 ? ret : template_make(&r->policy, &r->root, e);
}

static inline void rig_close(struct rig *r)
{
	closer_stop(&r->closer);
	template_done(&r->root);
	cgroup_tree_close(&r->tree);
	fd_close(r->init);
	fd_close(r->worker);
}

static inline struct kit *rig_kit(struct rig *r, struct err *e)
{
	char name[32];
	uint32_t i = (uint32_t)getpid() % 64 * 16 + r->made++ % 16;
	(void)snprintf(name, sizeof(name), "jail-%u", r->made);
	struct kit_spec spec = {.policy = &r->policy,
	        .root = &r->root,
	        .limits = &r->policy.limits,
	        .ports = r->policy.ports,
	        .nports = r->policy.nports,
	        .base = ID_STORE_BASE + (ID_LEASES - i) * ID_BLOCK,
	        .name = name,
	        .tree = &r->tree,
	        .closer = &r->closer};
	return kit_make(&spec, e);
}

/* argv = sh -c line */
static inline int rig_sh(const char *line)
{
	const char *argv[] = {"sh", "-c", line, NULL};
	const char *env[] = {
	        "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin", "HOME=/home/agent", NULL};
	struct exec_spec spec = {.argv = argv, .env = env, .cwd = "/workspace"};
	return exec_pack(&spec, NULL);
}

static inline struct launch_spec rig_spec(struct rig *r, struct kit *k)
{
	return (struct launch_spec){.policy = &r->policy,
	        .limits = &r->policy.limits,
	        .root = &r->root,
	        .kit = k,
	        .workspace = -1,
	        .home = -1,
	        .agent = -1,
	        .init_memfd = r->init};
}

/* Appends what the pipes say until all are closed or `ms` pass without a byte. */
static inline void rig_read(struct launch_stdio *s, struct rig_out *o, int ms)
{
	size_t at = 0;
	int *fds[] = {&s->out, &s->err, &s->in};
	bool tty = s->out < 0;
	for (;;) {
		struct pollfd p[2] = {{tty ? s->in : s->out, POLLIN, 0}, {s->err, POLLIN, 0}};
		if ((p[0].fd < 0 && p[1].fd < 0) || poll(p, 2, ms) <= 0)
			break;
		for (int i = 0; i < 2; i++) {
			if (!p[i].revents)
				continue;
			ssize_t n = read(p[i].fd, o->text + at, sizeof(o->text) - 1 - at);
			if (n > 0)
				at += (size_t)n;
			else
				fd_close(take_fd(*fds[tty ? 2 : i]));
		}
	}
	o->text[at] = '\0';
}

static inline void rig_answer(const struct launched *j, struct rig_out *o, int ms)
{
	union {
		struct init_exited m;
		char bytes[MSG_MAX];
	} u;
	int fds[MSG_FDS];
	struct pollfd p = {j->control, POLLIN, 0};
	if (poll(&p, 1, ms) <= 0 || msg_recv(j->control, &u, fds) != (int)sizeof(u.m))
		return;
	o->answered = true;
	o->code = u.m.code;
	o->sig = u.m.sig;
	o->error = u.m.error;
	o->stage = u.m.stage;
}

/* One more line in a live jail. */
static inline int rig_run(const struct launched *j, const char *line, uint32_t flags,
        struct rig_out *o, struct err *e)
{
	auto_close int memfd = rig_sh(line);
	struct launch_program p = {.exec = 7, .memfd = memfd, .flags = flags};
	struct launch_stdio s = LAUNCH_STDIO_NONE;
	*o = (struct rig_out){.code = -2};
	int r = launch_exec(j, &p, &s, e);
	if (r < 0)
		return r;
	if (!(flags & JAIL_MAKE_TTY))
		fd_close(take_fd(s.in));
	rig_read(&s, o, 20000);
	rig_answer(j, o, 20000);
	launch_stdio_close(&s);
	return 0;
}

#endif
