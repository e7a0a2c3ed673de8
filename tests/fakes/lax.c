/*
 * lax.c - a jail with layers left out, on purpose.
 *
 *	lax LAYER[,LAYER...] DIRECTORY PROGRAM [ARGUMENTS]
 *
 * Made of the product's own parts (template, kit, capabilities, filter), entered step by step as
 * in jail/enter.c, but each step that is named is not taken.  PROGRAM is a file of DIRECTORY,
 * which the jail sees as /tools.  A test that passes in a jail must fail here.
 *
 * The mount namespace is always a private one, and what is made writable is a layer over the
 * host's files: nothing that goes through reaches the host.
 */
#include "jail/caps.h"
#include "jail/mounts.h"
#include "jail/sysc.h"
#include "policy/arch.h"
#include "policy/bpf.h"
#include "tests/jail_rig.h"

#include <grp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <linux/keyctl.h>
#include <linux/sched.h>

/*      symbol     name         what a jail then lacks */
#define PARTS(X)                                                                                   \
	X(FILTER, "filter")       /* the system call filter */                                     \
	X(PRIVILEGE, "privilege") /* giving up root: user namespace, ids, capabilities */          \
	X(USERNS, "userns")       /* the user namespace alone: ids are the host's */               \
	X(NNP, "nnp")             /* no_new_privs */                                               \
	X(ROOT, "root")           /* a root of its own: the host's tree is there */                \
	X(READONLY, "readonly")   /* read-only mounts */                                           \
	X(NODEV, "nodev")         /* nodev and nosuid */                                           \
	X(MASKS, "masks")         /* masks over /proc */                                           \
	X(PID1, "pid1")           /* PID 1 out of reach: it is the agent's */                      \
	X(PIDNS, "pidns")                                                                          \
	X(NETNS, "netns")                                                                          \
	X(IPCNS, "ipcns")                                                                          \
	X(TIMENS, "timens")                                                                        \
	X(FDS, "fds")         /* close_range */                                                    \
	X(EGRESS, "egress")   /* the way out: strangers answer, whoever is dialled */              \
	X(SESSION, "session") /* setsid: the starter's terminal is there */                        \
	X(RLIMITS, "rlimits") /* resource limits */                                                \
	X(SIZES, "sizes")     /* sizes of what is writable */                                      \
	X(KEYRING, "keyring") /* a session keyring of its own */

enum part {
#define PART_ENUM(sym, name) sym,
	PARTS(PART_ENUM)
#undef PART_ENUM
	        PART_COUNT
};

static const char *const part_names[] = {
#define PART_NAME(sym, name) name,
        PARTS(PART_NAME)
#undef PART_NAME
};

static struct {
	uint32_t left_out; /* bits of enum part */
	struct rig rig;
	struct kit *kit;
	struct sock_filter filter[POLICY_INSNS];
	int nfilter;
	int program; /* fd */
	char **argv;
} lax;

static bool has(enum part p)
{
	return !(lax.left_out >> p & 1);
}

static _Noreturn void fail(const char *what)
{
	(void)fprintf(stderr, "lax: %s: %s\n", what, strerror(errno));
	_exit(112);
}

static void must_not_fail(long r, const char *what)
{
	if (r < 0)
		fail(what);
}

static void must_be_0(long r, const char *what)
{
	if (r < 0) {
		errno = (int)-r;
		fail(what);
	}
}

static void attach(int mount, const char *target)
{
	must_not_fail(move_mount(mount, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH), target);
}

static void set_mount(const char *path, uint64_t set, uint64_t clear, unsigned flags)
{
	struct mount_attr a = {.attr_set = set, .attr_clr = clear};
	must_not_fail(mount_setattr(AT_FDCWD, path, flags, &a, sizeof(a)), path);
}

/* ---- the view ---- */

static void make_proc(void)
{
	struct err e;
	static const char *const options[] = {"hidepid", "invisible", NULL};
	uint64_t attrs = MOUNTS_NSD | MOUNT_ATTR_NOEXEC | (has(READONLY) ? MOUNT_ATTR_RDONLY : 0);
	int proc = mounts_new("proc", attrs, options, &e);
	must_be_0(proc, "proc");
	attach(proc, "/proc");
	for (unsigned i = 0; has(MASKS) && lax.rig.root.masks >> i; i++) {
		int dir = 0;
		const char *path = template_mask(i, &dir);
		if (lax.rig.root.masks >> i & 1)
			must_not_fail(
			        mount(dir ? "/sys" : "/dev/null", path, NULL, MS_BIND, NULL), path);
	}
}

/* Written to without reaching what is below. */
static void make_writable(void)
{
	struct err e;
	set_mount("/", 0, MOUNT_ATTR_RDONLY, 0);
	set_mount("/dev", 0, MOUNT_ATTR_RDONLY, 0);
	must_not_fail(mkdir("/run/up", 0755), "/run/up");
	must_not_fail(mkdir("/run/work", 0755), "/run/work");
	static const char *const options[] = {
	        "lowerdir", "/usr", "upperdir", "/run/up", "workdir", "/run/work", NULL};
	int mount = mounts_new("overlay", 0, options, &e);
	must_be_0(mount, "overlay");
	attach(mount, "/usr");
	static const char *const small[] = {"size", "1m", NULL};
	mount = mounts_new("tmpfs", 0, small, &e);
	must_be_0(mount, "tmpfs");
	attach(mount, "/mnt");
}

static void make_unsized(const char *target)
{
	struct err e;
	char id[16];
	(void)snprintf(id, sizeof(id), "%u", lax.kit->base + ID_INNER_AGENT);
	/* still an end, should a bomb not stop by itself */
	const char *const options[] = {
	        "size", "600m", "nr_inodes", "1000000", "mode", "0777", "uid", id, "gid", id, NULL};
	int mount = mounts_new("tmpfs", 0, options, &e);
	must_be_0(mount, "tmpfs");
	attach(mount, target);
}

static void make_view(void)
{
	static const struct {
		enum kit_mount mount;
		const char *target;
	} own[] = {{KIT_HOME, "/home/agent"}, {KIT_WORKSPACE, "/workspace"}};
	struct mount_attr private = {.propagation = MS_PRIVATE};
	must_not_fail(has(ROOT) ? setns(lax.kit->mntns, CLONE_NEWNS) : unshare(CLONE_NEWNS),
	        "mount namespace");
	must_not_fail(mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &private, sizeof(private)), "/");
	if (has(ROOT)) {
		for (size_t i = 0; i < ARRAY_LEN(own); i++)
			attach(lax.kit->mounts[own[i].mount], own[i].target);
		make_proc();
	}
	if (!has(ROOT))
		make_unsized("/tmp");
	static const char *const sized[] = {
	        "/tmp", "/dev/shm", "/run", "/home/agent", "/workspace"};
	for (size_t i = 0; has(ROOT) && !has(SIZES) && i < ARRAY_LEN(sized); i++)
		make_unsized(sized[i]);
	if (has(ROOT) && !has(READONLY))
		make_writable();
	if (has(ROOT) && !has(NODEV))
		set_mount("/", 0, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID, AT_RECURSIVE);
	must_not_fail(chdir("/tmp"), "/tmp");
}

/* ---- who one is ---- */

static void join(void)
{
	must_not_fail(has(NETNS) ? setns(lax.kit->netns, CLONE_NEWNET) : 0, "network");
	must_not_fail(has(IPCNS) ? setns(lax.kit->ipcns, CLONE_NEWIPC) : 0, "ipc");
	must_not_fail(setns(lax.kit->utsns, CLONE_NEWUTS), "uts");
	if (has(TIMENS) && unshare(CLONE_NEWTIME) < 0 && errno != EINVAL)
		fail("time"); /* EINVAL: this kernel has none */
}

static void become(uint32_t id)
{
	const struct caps_identity who = {
	        .uid = id, .gid = id, .securebits = CAPS_SECUREBITS_FINAL};
	if (!has(PRIVILEGE))
		return;
	if (!has(USERNS)) { /* a plain user of the host's */
		must_not_fail(setgroups(0, NULL), "groups");
		must_not_fail(setresgid(id, id, id), "gid");
		must_not_fail(setresuid(id, id, id), "uid");
		return;
	}
	must_not_fail(setns(lax.kit->userns, CLONE_NEWUSER), "user namespace");
	must_be_0(caps_securebits(), "securebits");
	must_be_0(caps_ids(&who), "ids");
	must_be_0(caps_drop(&who), "capabilities");
}

static void limit(int resource, uint64_t value)
{
	struct rlimit l = {value, value};
	must_not_fail(setrlimit((__rlimit_resource_t)resource, &l), "limit");
}

static void limits(void)
{
	limit(RLIMIT_CORE, 1);
	limit(RLIMIT_MSGQUEUE, 0);
	limit(RLIMIT_RTPRIO, 0);
	limit(RLIMIT_NICE, 0);
	limit(RLIMIT_MEMLOCK, 64 << 10);
	limit(RLIMIT_SIGPENDING, 4096);
	limit(RLIMIT_NOFILE, 4096);
}

/* The terminal of whoever started it. */
static void take_terminal(void)
{
	int unlock = 0;
	must_not_fail(setsid(), "session");
	int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	must_not_fail(master, "terminal");
	must_not_fail(ioctl(master, TIOCSPTLCK, &unlock), "unlock");
	int slave = ioctl(master, TIOCGPTPEER, O_RDWR);
	must_not_fail(slave, "terminal");
	/* both stay open over the exec, as a starter's would */
	must_not_fail(fcntl(master, F_SETFD, 0), "terminal");
	must_not_fail(ioctl(slave, TIOCSCTTY, 0), "controlling terminal");
}

static _Noreturn void program(void)
{
	if (has(SESSION))
		(void)setsid();
	else
		take_terminal();
	become(ID_INNER_AGENT);
	if (has(KEYRING))
		(void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	if (has(RLIMITS))
		limits();
	if (has(NNP) && has(PRIVILEGE))
		must_not_fail(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
	int fd = fcntl(lax.program, F_DUPFD_CLOEXEC, 100);
	must_not_fail(fd, "program");
	if (has(FDS) && has(SESSION)) /* without a master there is no terminal */
		must_not_fail(close_range(3, 99, 0), "close_range");
	must_not_fail(close_range((unsigned)fd + 1, ~0u, 0), "close_range");
	struct sock_fprog p = {.len = (unsigned short)lax.nfilter, .filter = lax.filter};
	if (has(FILTER))
		must_not_fail(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p), "filter");
	char *env[] = {NULL};
	(void)syscall(SYS_execveat, fd, "", lax.argv, env, AT_EMPTY_PATH);
	fail("exec");
}

/* ---- what answers where the way out does not decide ---- */

static int serve_at(int type, uint16_t port)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	int s = socket(AF_INET6, type | SOCK_CLOEXEC, 0);
	must_not_fail(s, "stranger");
	must_not_fail(bind(s, (struct sockaddr *)&at, sizeof(at)), "stranger");
	must_not_fail(type == SOCK_STREAM ? listen(s, 64) : 0, "stranger");
	return s;
}

/* An address for every name; something for everything else. */
static void answer_datagram(int s)
{
	union {
		uint8_t bytes[2048];
		struct cmsghdr aligned;
	} control;
	uint8_t text[2048];
	struct sockaddr_storage from;
	struct iovec v = {text, sizeof(text)};
	struct msghdr m = {.msg_name = &from,
	        .msg_namelen = sizeof(from),
	        .msg_iov = &v,
	        .msg_iovlen = 1,
	        .msg_control = control.bytes,
	        .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(s, &m, 0); /* who was dialled is in the control data, and answers */
	if (n < 12)
		return;
	text[2] = 0x80;
	text[3] = 0;
	text[7] = 1;
	v.iov_len = (size_t)n;
	(void)sendmsg(s, &m, 0);
}

/* Whoever speaks DNS by TCP is heard without end. */
static void answer_stream(int s, bool patient)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	char heard[4096];
	int c = accept4(s, NULL, NULL, SOCK_CLOEXEC);
	if (c < 0 || patient)
		return;
	(void)recv(c, heard, sizeof(heard), 0);
	(void)send(c, text, sizeof(text) - 1, MSG_NOSIGNAL);
	(void)shutdown(c, SHUT_WR);
	fd_close(c);
}

static void strangers(void)
{
	static const uint16_t ports[] = {22, 853, 3128, 8080, 8443};
	const int *l = lax.kit->listeners;
	struct pollfd p[16] = {{.fd = l[EGRESS_DNS_TCP]}, {.fd = l[EGRESS_HTTP]},
	        {.fd = l[EGRESS_TLS]}, {.fd = l[EGRESS_DNS_UDP]}};
	size_t n = 4;
	for (size_t i = 0; i < ARRAY_LEN(ports); i++)
		p[n++].fd = serve_at(SOCK_STREAM, ports[i]);
	size_t udp = n;
	p[n++].fd = serve_at(SOCK_DGRAM, 443);
	p[n++].fd = serve_at(SOCK_DGRAM, 123);
	for (size_t i = 0; i < n; i++)
		p[i].events = POLLIN;
	if (fork() != 0) /* all of them listen before anybody dials */
		return;
	for (;;) {
		if (poll(p, n, -1) < 0)
			continue;
		for (size_t i = 0; i < n; i++) {
			if (p[i].revents && (i == 3 || i >= udp))
				answer_datagram(p[i].fd);
			else if (p[i].revents)
				answer_stream(p[i].fd, i == 0);
		}
	}
}

/* PID 1 of the jail, or a process of the host's where there is no own pid namespace. */
static _Noreturn void first(void)
{
	if (!has(FDS)) /* one that was forgotten */
		must_not_fail(open("/", O_RDONLY | O_DIRECTORY), "/");
	join();
	if (!has(EGRESS))
		strangers();
	make_view();
	int ready[2]; /* what it may do to us counts when we are what we are to be */
	must_not_fail(pipe2(ready, O_CLOEXEC), "pipe");
	pid_t pid = fork();
	if (pid == 0) {
		char byte;
		(void)close(ready[1]);
		must_not_fail(read(ready[0], &byte, 1), "pipe");
		(void)close(ready[0]);
		program();
	}
	must_not_fail(pid, "fork");
	(void)close(ready[0]);
	become(has(PID1) ? ID_INNER_INIT : ID_INNER_AGENT);
	must_not_fail(prctl(PR_SET_DUMPABLE, !has(PID1), 0, 0, 0), "dumpable");
	(void)close(ready[1]);
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* ---- arguments ---- */

static void parse(char *list)
{
	for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		int p = 0;
		while (p < PART_COUNT && strcmp(part_names[p], name) != 0)
			p++;
		if (p == PART_COUNT) {
			(void)fprintf(stderr, "lax: there is no layer '%s'\n", name);
			exit(100);
		}
		lax.left_out |= (uint32_t)1 << p;
	}
}

static int count_left(void)
{
	char text[4096];
	int fd = openat(lax.kit->cgroup.dirfd, "cgroup.procs", O_RDONLY | O_CLOEXEC), n = 0;
	ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof(text));
	for (ssize_t i = 0; i < got; i++)
		n += text[i] == '\n';
	fd_close(fd);
	return n;
}

static int prepare(const char *dir, const char *name, struct err *e)
{
	auto_free char *path = xasprintf("%s/%s", dir, name);
	lax.program = open(path, O_RDONLY | O_CLOEXEC);
	if (lax.program < 0)
		return err_errno(e, "%s", path);
	lax.nfilter = bpf_compile(arch_native(), 0, lax.filter, e);
	if (lax.nfilter < 0)
		return lax.nfilter;
	int r = rig_open(&lax.rig, e);
	if (r < 0)
		return r;
	struct policy_mount *m = &lax.rig.policy.mounts[lax.rig.policy.nmounts++];
	(void)snprintf(m->source, sizeof(m->source), "%s", dir);
	(void)snprintf(m->target, sizeof(m->target), "/tools");
	template_done(&lax.rig.root);
	r = template_make(&lax.rig.policy, &lax.rig.root, e);
	if (r < 0)
		return r;
	lax.kit = rig_kit(&lax.rig, e);
	return lax.kit ? 0 : e->code;
}

int main(int argc, char **argv)
{
	struct err e = {.code = 0};
	if (argc < 4) {
		(void)fprintf(stderr, "lax LAYER[,LAYER...] DIRECTORY PROGRAM [ARGUMENTS]\n");
		return 100;
	}
	parse(argv[1]);
	lax.argv = argv + 3;
	if (prepare(argv[2], argv[3], &e) < 0) {
		(void)fprintf(stderr, "lax: %s\n", e.text);
		return 111;
	}
	struct clone_args a = {.flags = CLONE_INTO_CGROUP | (has(PIDNS) ? CLONE_NEWPID : 0),
	        .exit_signal = SIGCHLD,
	        .cgroup = (uint64_t)lax.kit->cgroup.dirfd};
	long pid = syscall(SYS_clone3, &a, sizeof(a));
	if (pid == 0)
		first();
	must_not_fail(pid, "clone3");
	int status = 0;
	while (waitpid((pid_t)pid, &status, 0) < 0 && errno == EINTR)
		;
	(void)fprintf(stderr, "left: %d\n", count_left());
	kit_free(lax.kit);
	rig_close(&lax.rig);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 111;
}
