/*
 * Theory of operation: a probe is a function that makes one layer for real and
 * throws it away.  Those that only touch the calling task run in a forked child,
 * which answers with a struct err; those that make descriptors (kit, template,
 * idmap) run here and close them.
 */
#include "jail/host.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/mem.h"
#include "jail/landlock.h"
#include "jail/mounts.h"
#include "jail/net.h"
#include "jail/root.h"
#include "jail/template.h"
#include "jail/userns.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>

/* ---- in a child ---- */

static int in_child(int (*fn)(void *), void *arg, struct err *e)
{
	int pipefd[2];
	if (pipe2(pipefd, O_CLOEXEC) < 0)
		return err_errno(e, "pipe");
	auto_close int in = pipefd[0], out = pipefd[1];
	pid_t pid = fork();
	if (pid < 0)
		return err_errno(e, "fork");
	if (pid == 0) {
		int r = fn(arg);
		(void)!write(out, &r, sizeof(r));
		_exit(0);
	}
	fd_close(take_fd(out));
	int r = -EIO;
	if (fd_read_full(in, &r, sizeof(r)) != (ssize_t)sizeof(r))
		r = -EIO;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return r < 0 ? err_set(e, r, "%s", strerror(-r)) : 0;
}

static int try_unshare(void *flag)
{
	return unshare(*(int *)flag) < 0 ? -errno : 0;
}

static int try_nnp_and_seccomp(void *with_filter)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	if (!*(bool *)with_filter)
		return 0;
	struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog prog = {.len = 1, .filter = allow};
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		return -errno;
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER ? 0 : -EPERM;
}

static int try_keyring(void *unused)
{
	(void)unused;
	long r = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	return r < 0 && errno != ENOSYS ? -errno : 0;
}

/* Enforced in a child that may then list "/" and nothing else. */
static int try_landlock(void *unused)
{
	(void)unused;
	static const struct landlock_rule names = {"/", LANDLOCK_LIST, false};
	int abi = landlock_abi();
	if (!abi)
		return -EOPNOTSUPP;
	long r = landlock_make(abi, &names, 1);
	if (r >= 0)
		r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : landlock_enforce(r);
	if (r < 0)
		return (int)r;
	return open("/proc/self/status", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES ? 0 : -EPERM;
}

static int try_caps(void *unused)
{
	(void)unused;
	static const int needed[] = {CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW, CAP_SETUID,
	        CAP_SETGID, CAP_SETPCAP, CAP_SYS_CHROOT, CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_KILL,
	        CAP_SETFCAP, CAP_SYS_PTRACE};
	for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
		if (prctl(PR_CAPBSET_READ, needed[i], 0, 0, 0) != 1)
			return -EPERM;
	}
	return prctl(PR_CAPBSET_DROP, CAP_SYS_BOOT, 0, 0, 0) < 0 ? -errno : 0;
}

/* In a pid namespace of its own, as PID 1 of a jail does it. */
static int try_proc(void *unused)
{
	(void)unused;
	if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0) {
		static const char *const options[] = {"hidepid", "invisible", NULL};
		int mount = mounts_new("proc", MOUNTS_NSD, options, NULL);
		_exit(mount < 0 ? -mount : 0);
	}
	int status = 0;
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static int try_rlimit(void *unused)
{
	(void)unused;
	struct rlimit l;
	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return -errno;
	return setrlimit(RLIMIT_NOFILE, &l) < 0 ? -errno : 0;
}

/* ---- here ---- */

struct probe {
	const struct cgroup_tree *tree;
	int state_dirfd;
	uint32_t base;
	struct host *host;
};

static int users(const struct probe *p, uint32_t inside, struct err *e)
{
	const struct userns_map map = {inside, p->base, ID_BLOCK};
	return userns_make(&map, &map, true, e);
}

static int probe_userns(const struct probe *p, struct err *e)
{
	int fd = users(p, 0, e);
	fd_close(fd);
	return fd < 0 ? fd : 0;
}

static int probe_netns(const struct probe *p, struct err *e)
{
	(void)p;
	int listeners[EGRESS_LISTENERS];
	struct net_ports none;
	net_ports_init(&none, NULL, 0);
	int ns = net_make(listeners, &none, e);
	if (ns < 0)
		return ns;
	for (int i = 0; i < EGRESS_LISTENERS; i++)
		fd_close(listeners[i]);
	fd_close(ns);
	return 0;
}

static int probe_idmap(const struct probe *p, struct err *e)
{
	auto_close int idmap = users(p, ID_STORE_BASE, e);
	if (idmap < 0)
		return idmap;
	int mount = mounts_clone(p->state_dirfd, "", MOUNTS_NSD, idmap, e);
	fd_close(mount);
	return mount < 0 ? mount : 0;
}

static int probe_rootfs(const struct probe *p, struct err *e)
{
	(void)p;
	auto_free struct policy *plain = xnew(struct policy);
	struct template t = TEMPLATE_NONE;
	plain->root = POLICY_ROOT_HOST_USR;
	int r = template_make(plain, &t, e);
	template_done(&t);
	return r;
}

static int probe_inodes(const struct probe *p, struct err *e)
{
	(void)p;
	auto_free struct policy *own = xnew(struct policy);
	struct template t = TEMPLATE_NONE;
	own->root = POLICY_ROOT_HOST_USR;
	own->flags = POLICY_PRIVATE_FILES;
	int r = template_make(own, &t, e);
	int ns = r < 0 ? r : root_make(own, &t, NULL, 0, -1, e);
	fd_close(ns);
	template_done(&t);
	return ns < 0 ? ns : 0;
}

static int probe_devpts(const struct probe *p, struct err *e)
{
	(void)p;
	static const char *const options[] = {"ptmxmode", "0666", "mode", "0620", NULL};
	int mount = mounts_new("devpts", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, options, e);
	fd_close(mount);
	return mount < 0 ? mount : 0;
}

/* CLONE_INTO_CGROUP compares the kill count of the target with that of the caller's own cgroup
 * (seen on 6.18): where the latter was ever written to cgroup.kill, each child of ours would be
 * killed before its first instruction. */
static int clone_into(int cgroup, struct err *e)
{
	struct clone_args a = {
	        .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)cgroup};
	long pid = syscall(SYS_clone3, &a, sizeof(a));
	if (pid == 0)
		_exit(0);
	int status = 0;
	if (pid < 0 || waitpid((pid_t)pid, &status, 0) < 0)
		return err_errno(e, "clone3 into a cgroup");
	return WIFSIGNALED(status) ? err_set(e, -EPERM, "a child cloned into a cgroup is killed")
	                           : 0;
}

static int probe_cgroup(const struct probe *p, struct err *e)
{
	static const struct limits none;
	struct cgroup c = CGROUP_NONE;
	if (p->tree->dirfd < 0)
		return err_set(e, -ENOENT, "no cgroup2 subtree");
	int r = cgroup_make(p->tree, "probe", &none, &c, e);
	if (r == 0)
		r = clone_into(c.dirfd, e);
	cgroup_remove(p->tree, &c);
	return r;
}

void host_found(
        struct host *h, enum layer l, int r, const char *have, const char *lack, const char *remedy)
{
	if (r >= 0)
		h->layers |= LAYER_BIT(l);
	(void)str_copy(h->detail[l], LAYER_TEXT_MAX, r >= 0 ? have : lack);
	(void)str_copy(h->remedy[l], LAYER_TEXT_MAX, r >= 0 ? "" : remedy);
}

static void probe_namespaces(struct host *h)
{
	static const struct {
		enum layer layer;
		int flag;
		const char *config;
	} rows[] = {
	        {LAYER_MOUNTNS, CLONE_NEWNS, "run agentboxd with CAP_SYS_ADMIN"},
	        {LAYER_PIDNS, CLONE_NEWPID, "CONFIG_PID_NS, user.max_pid_namespaces > 0"},
	        {LAYER_IPCNS, CLONE_NEWIPC, "CONFIG_IPC_NS, user.max_ipc_namespaces > 0"},
	        {LAYER_UTSNS, CLONE_NEWUTS, "CONFIG_UTS_NS, user.max_uts_namespaces > 0"},
	        {LAYER_CGROUPNS, CLONE_NEWCGROUP, "CONFIG_CGROUPS, user.max_cgroup_namespaces > 0"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err e = {.code = 0};
		int flag = rows[i].flag;
		int r = in_child(try_unshare, &flag, &e);
		host_found(h, rows[i].layer, r, "made and left", e.text, rows[i].config);
	}
}

static const char *landlock_covers(void)
{
	int abi = landlock_abi();
	return abi >= LANDLOCK_ABI_SCOPES  ? "files, devices, signals, abstract sockets"
	       : abi >= LANDLOCK_ABI_IOCTL ? "files, devices (signals and abstract sockets: 6.12)"
	                                   : "files (devices: Linux 6.10; signals, sockets: 6.12)";
}

static void probe_tasks(struct host *h)
{
	static const bool without = false, with = true;
	const struct {
		enum layer layer;
		int (*fn)(void *);
		const bool *arg;
		const char *have, *remedy;
	} rows[] = {
	        {LAYER_PROC, try_proc, &without, "hidepid=invisible", "Linux 5.8 or newer"},
	        {LAYER_CAPS, try_caps, &without, "dropped and locked",
	                "run agentboxd as root; do not bound its capabilities"},
	        {LAYER_NNP, try_nnp_and_seccomp, &without, "set", "Linux 3.5 or newer"},
	        {LAYER_SECCOMP, try_nnp_and_seccomp, &with, "filter mode", "CONFIG_SECCOMP_FILTER"},
	        {LAYER_LANDLOCK, try_landlock, &without, landlock_covers(),
	                "CONFIG_SECURITY_LANDLOCK, landlock among lsm= of the boot line"},
	        {LAYER_KEYRING, try_keyring, &without, "joined a new one",
	                "allow keyctl to agentboxd (its unit's SystemCallFilter)"},
	        {LAYER_RLIMITS, try_rlimit, &without, "set", "allow prlimit64 to agentboxd"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err e = {.code = 0};
		bool arg = *rows[i].arg;
		int r = in_child(rows[i].fn, &arg, &e);
		host_found(h, rows[i].layer, r, rows[i].have, e.text, rows[i].remedy);
	}
}

static void probe_objects(const struct probe *p)
{
	static const struct {
		enum layer layer;
		int (*fn)(const struct probe *p, struct err *e);
		const char *have, *remedy;
	} rows[] = {
	        {LAYER_USERNS, probe_userns, "64Ki ids, nothing nests below",
	                "user.max_user_namespaces > 0, CONFIG_USER_NS, writable /proc/sys"},
	        {LAYER_NETNS, probe_netns, "lo with a route for everything",
	                "CONFIG_NET_NS, user.max_net_namespaces > 0, IPv6 sockets"},
	        {LAYER_ROOTFS, probe_rootfs, "host's /usr read-only, /etc synthesized",
	                "run agentboxd in the host's mount namespace"},
	        {LAYER_INODES, probe_inodes, "an overlay a directory",
	                "CONFIG_OVERLAY_FS (modprobe overlay); or filesystem: { private: false }"},
	        {LAYER_DEV, probe_devpts, "six nodes, own devpts", "CONFIG_UNIX98_PTYS"},
	        {LAYER_IDMAP, probe_idmap, "state's file system maps ids",
	                "put the state directory on ext4, xfs, btrfs or (6.3) tmpfs"},
	        {LAYER_CGROUP, probe_cgroup, "own subtree with cgroup.kill",
	                "mount cgroup2; Linux 6.1; Delegate=yes; start in a cgroup never killed"},
	        {LAYER_EGRESS, probe_netns, "listeners inside, answered outside",
	                "CONFIG_PACKET, IPv6 sockets (no ipv6.disable=1)"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err e = {.code = 0};
		int r = rows[i].fn(p, &e);
		host_found(p->host, rows[i].layer, r, rows[i].have, e.text, rows[i].remedy);
	}
}

static void probe_limits(const struct probe *p)
{
	struct host *h = p->host;
	static const struct {
		enum layer layer;
		const char *have, *lack, *remedy;
	} rows[] = {
	        {LAYER_LIMIT_MEMORY, "memory.max", "no memory controller in cgroup2",
	                "boot with cgroup_no_v1=memory or systemd.unified_cgroup_hierarchy=1"},
	        {LAYER_LIMIT_PIDS, "pids.max",
	                "no pids controller in cgroup2: RLIMIT_NPROC instead",
	                "boot with cgroup_no_v1=pids or systemd.unified_cgroup_hierarchy=1"},
	        {LAYER_LIMIT_CPU, "cpu.max",
	                "no cpu controller in cgroup2: only limit.pids bounds a fork bomb",
	                "boot with cgroup_no_v1=cpu or systemd.unified_cgroup_hierarchy=1"},
	        {LAYER_LIMIT_IO, "io.max",
	                "no io controller in cgroup2, or no disk below the state",
	                "boot with cgroup_no_v1=blkio; keep the state on a local disk"},
	};
	uint32_t have = cgroup_limits_in_force(p->tree);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		host_found(h, rows[i].layer, have & LAYER_BIT(rows[i].layer) ? 0 : -ENOENT,
		        rows[i].have, rows[i].lack, rows[i].remedy);
	if (!(have & LAYER_BIT(LAYER_LIMIT_PIDS)))
		h->fallback |= LAYER_BIT(LAYER_LIMIT_PIDS);
}

void host_probe(const struct cgroup_tree *t, int state_dirfd, uint32_t lease_base, struct host *ret)
{
	*ret = (struct host){.layers = 0};
	const struct probe p = {
	        .tree = t, .state_dirfd = state_dirfd, .base = lease_base, .host = ret};
	probe_namespaces(ret);
	probe_tasks(ret);
	probe_objects(&p);
	probe_limits(&p);
}

int host_require(const struct host *h, const struct policy *p, struct err *e)
{
	int r = policy_proven(p, h->unproven, e);
	return r < 0 ? r : policy_met(p, h->layers, h->detail, h->remedy, e);
}
