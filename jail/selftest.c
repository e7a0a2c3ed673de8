/*
 * Theory of operation: one jail of the host's /usr with the policy's filter and small limits, an
 * idmapped workspace on the state's file system, and the canary bound below /mnt.  Everything is
 * made by kit.h, template.h and launch.h, as for any other jail.  While the canary waits, its
 * cgroup, its keyring and its listener are looked at from here; then cgroup.kill must end
 * everything, its stopped children included.
 */
#include "jail/selftest.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/mem.h"
#include "jail/launch.h"
#include "proto/canary.h"
#include "proto/exec.h"

#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KILL_MS = 5000, FILE_MAX = 64 << 10 };
static const char scratch[] = "selftest";

static const struct limits limits = {.memory_bytes = CANARY_MEMORY,
        .pids = CANARY_PIDS,
        .cpu_milli = 1000,
        .io_read_bps = 1 << 30,
        .io_write_bps = 1 << 30,
        .disk_bytes = CANARY_DISK,
        .inodes = 1024,
        .nofile = CANARY_NOFILE,
        .file_bytes = CANARY_FILE_MAX,
        .tmp_bytes = CANARY_DISK,
        .shm_bytes = CANARY_DISK};

/* What was found of each layer, first reason first. */
struct findings {
	uint32_t looked, broken;
	char text[LAYER_COUNT][LAYER_TEXT_MAX];
};

static void lacks(struct findings *f, enum layer l, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static void lacks(struct findings *f, enum layer l, const char *fmt, ...)
{
	f->looked |= LAYER_BIT(l);
	if (f->broken & LAYER_BIT(l))
		return;
	f->broken |= LAYER_BIT(l);
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(f->text[l], LAYER_TEXT_MAX, fmt, ap);
	va_end(ap);
}

/* ---- from outside ---- */

static void see_spaces(
        struct findings *f, const struct canary_record *r, const struct selftest_spec *s)
{
	static const struct {
		const char *name;
		enum layer layer;
	} rows[] = {
#define CANARY_SPACE(n, l) {n, l},
	        CANARY_SPACES(CANARY_SPACE)
#undef CANARY_SPACE
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char path[64];
		struct stat st;
		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", rows[i].name);
		f->looked |= LAYER_BIT(rows[i].layer);
		if (stat(path, &st) < 0 && errno == ENOENT && rows[i].layer == LAYER_INODES)
			continue; /* a kernel without time namespaces has none to share */
		if (stat(path, &st) < 0)
			lacks(f, rows[i].layer, "%s: %s", path, strerror(errno));
		else if (r->spaces[i] == 0 || r->spaces[i] == st.st_ino)
			lacks(f, rows[i].layer, "the jail is in the host's %s namespace",
			        rows[i].name);
	}
	if (r->base != s->base)
		lacks(f, LAYER_USERNS, "inner id 0 is %u outside, not %u", r->base, s->base);
}

/* One line a user: "UID: USAGE KEYS/...".  The jail's keyring counts for PID 1's id, which nobody
 * else has. */
static void see_keyring(struct findings *f, const struct selftest_spec *s)
{
	auto_free char *text = NULL;
	size_t n = 0;
	int r = file_slurp("/proc/key-users", FILE_MAX, &text, &n);
	f->looked |= LAYER_BIT(LAYER_KEYRING);
	/* A kernel without keyrings has none to share; where the file is covered (a container's
	 * own mask) the launch's own answer has to do. */
	if (r == -ENOENT || (r == 0 && n == 0))
		return;
	if (r < 0) {
		lacks(f, LAYER_KEYRING, "/proc/key-users: %s", strerror(-r));
		return;
	}
	auto_free char *user = xasprintf("\n%5u:", s->base + ID_INNER_INIT);
	if (!strstr(text, user))
		lacks(f, LAYER_KEYRING, "the jail has no keyring of its own");
}

/* The canary has connected: that must have come here, to the address it asked for. */
static void see_way_out(struct findings *f, const struct kit *k)
{
	struct sockaddr_storage at = {0};
	socklen_t len = sizeof(at);
	assert(k);
	auto_close int fd = accept4(k->listeners[EGRESS_TLS], NULL, NULL, SOCK_CLOEXEC);
	char text[INET6_ADDRSTRLEN] = "";
	if (fd < 0 || getsockname(fd, (struct sockaddr *)&at, &len) < 0) {
		lacks(f, LAYER_EGRESS, "what goes out does not come here: %s", strerror(errno));
		return;
	}
	(void)inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&at)->sin6_addr, text, sizeof(text));
	if (strcmp(text, "::ffff:" CANARY_ADDRESS) != 0)
		lacks(f, LAYER_EGRESS, "what goes out comes as %s", text);
}

static void see_workspace(struct findings *f, int workspace)
{
	struct stat st;
	const uid_t want = ID_STORE_BASE + ID_INNER_AGENT;
	if (fstatat(workspace, CANARY_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0)
		lacks(f, LAYER_IDMAP, "the workspace's file: %s", strerror(errno));
	else if (st.st_uid != want || st.st_gid != want)
		lacks(f, LAYER_IDMAP, "the workspace's file is stored under %u:%u, not %u",
		        st.st_uid, st.st_gid, want);
}

static void see_limit(struct findings *f, const struct cgroup *c, enum layer l, const char *file,
        const char *want)
{
	auto_free char *text = NULL;
	size_t n = 0;
	f->looked |= LAYER_BIT(l);
	int r = file_slurp_at(c->dirfd, file, FILE_MAX, &text, &n);
	if (r < 0)
		lacks(f, l, "%s: %s", file, strerror(-r));
	else if (!strstr(text, want))
		lacks(f, l, "%s is '%.*s', not '%s'", file, (int)strcspn(text, "\n"), text, want);
}

/* The first number of a file: what the kernel counts for the jail. */
static void see_count(
        struct findings *f, const struct cgroup *c, enum layer l, const char *file, uint64_t least)
{
	auto_free char *text = NULL;
	size_t n = 0;
	int r = file_slurp_at(c->dirfd, file, FILE_MAX, &text, &n);
	const char *number = r < 0 ? "" : text + strcspn(text, "0123456789");
	if (strtoull(number, NULL, 10) < least)
		lacks(f, l, "%s counts %.20s where %llu were used", file, number,
		        (unsigned long long)least);
}

static void see_limits(struct findings *f, const struct launched *j)
{
	const struct cgroup *c = &j->kit->cgroup;
	uint32_t there = cgroup_limits_in_force(j->kit->tree);
	char memory[24], pids[24], io[64];
	(void)snprintf(memory, sizeof(memory), "%d\n", CANARY_MEMORY);
	(void)snprintf(pids, sizeof(pids), "%d\n", CANARY_PIDS);
	(void)snprintf(io, sizeof(io), "%s rbps=%llu wbps=%llu", j->kit->tree->io_device,
	        (unsigned long long)limits.io_read_bps, (unsigned long long)limits.io_write_bps);
	if (there & LAYER_BIT(LAYER_LIMIT_MEMORY)) {
		see_limit(f, c, LAYER_LIMIT_MEMORY, "memory.max", memory);
		see_count(f, c, LAYER_LIMIT_MEMORY, "memory.current", CANARY_TOUCHED);
	}
	if (there & LAYER_BIT(LAYER_LIMIT_PIDS)) {
		see_limit(f, c, LAYER_LIMIT_PIDS, "pids.max", pids);
		see_count(f, c, LAYER_LIMIT_PIDS, "pids.current", 3);
	}
	if (there & LAYER_BIT(LAYER_LIMIT_CPU)) {
		see_limit(f, c, LAYER_LIMIT_CPU, "cpu.max", "100000 100000\n");
		see_count(f, c, LAYER_LIMIT_CPU, "cpu.stat", 1);
	}
	if (there & LAYER_BIT(LAYER_LIMIT_IO))
		see_limit(f, c, LAYER_LIMIT_IO, "io.max", io);
}

static void see_end(struct findings *f, const struct launched *j)
{
	struct err e = {0};
	const struct cgroup *c = &j->kit->cgroup;
	f->looked |= LAYER_BIT(LAYER_CGROUP);
	if (cgroup_populated(c) != 1)
		lacks(f, LAYER_CGROUP, "the jail is not in its cgroup");
	if (cgroup_kill(c, &e) < 0)
		lacks(f, LAYER_CGROUP, "%s", e.text);
	else if (cgroup_wait_empty(c, KILL_MS) < 0)
		lacks(f, LAYER_CGROUP, "processes outlive cgroup.kill");
}

/* ---- the jail ---- */

static int why_silent(const struct launched *j, struct err *e)
{
	union {
		struct init_exited m;
		char bytes[MSG_MAX];
	} u;
	int fds[MSG_FDS];
	struct pollfd p = {.fd = j->control, .events = POLLIN};
	if (poll(&p, 1, KILL_MS) != 1 || msg_recv(j->control, &u, fds) != (int)sizeof(u.m))
		return err_set(e, -EIO, "PID 1 of the canary's jail ended");
	if (u.m.error)
		return err_set(
		        e, -u.m.error, "the canary could not be started: %s", strerror(u.m.error));
	return err_set(e, -EIO, "the canary ended with %s %d", u.m.sig ? "signal" : "exit code",
	        u.m.sig ? u.m.sig : u.m.code);
}

static int read_record(
        const struct launched *j, int64_t until_ms, struct canary_record *r, struct err *e)
{
	for (;;) {
		int64_t left = until_ms - clock_mono_ms();
		struct pollfd p = {.fd = j->stdio.out, .events = POLLIN};
		int n = left > 0 ? poll(&p, 1, (int)left) : 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(e, -ETIME, "the canary said nothing within %d s",
			        SELFTEST_MS / 1000);
		ssize_t got = read(j->stdio.out, r, sizeof(*r));
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (got == 0)
			return why_silent(j, e);
		if (got != (ssize_t)sizeof(*r) || r->magic != CANARY_MAGIC || r->size != sizeof(*r))
			return err_set(e, -EBADMSG, "the canary's record is none");
		return 0;
	}
}

static void take_record(struct findings *f, struct canary_record *r)
{
	f->looked |= r->looked;
	for (int l = 0; l < LAYER_COUNT; l++) {
		r->text[l][CANARY_TEXT_MAX - 1] = '\0';
		if (r->broken & LAYER_BIT(l))
			lacks(f, (enum layer)l, "%s",
			        msg_text_ok(r->text[l], CANARY_TEXT_MAX) ? r->text[l] : "?");
	}
}

static int observe(const struct selftest_spec *s, const struct launched *j, int workspace,
        struct findings *f, struct err *e)
{
	struct canary_record r;
	int ret = read_record(j, clock_mono_ms() + SELFTEST_MS, &r, e);
	if (ret < 0)
		return ret;
	take_record(f, &r);
	see_spaces(f, &r, s);
	see_keyring(f, s);
	see_way_out(f, j->kit);
	see_workspace(f, workspace);
	see_limits(f, j);
	see_end(f, j);
	return 0;
}

static int launch(const struct selftest_spec *s, const struct policy *p, int workspace,
        struct launched *ret, struct err *e)
{
	static const char *const argv[] = {CANARY_PATH, NULL}, *const env[] = {NULL};
	const struct exec_spec exec = {.argv = argv, .env = env, .cwd = "/workspace"};
	auto_close int program = open(s->canary, O_PATH | O_CLOEXEC);
	if (program < 0)
		return err_errno(e, "%s", s->canary);
	auto_close int memfd = exec_pack(&exec, e);
	if (memfd < 0)
		return memfd;
	struct template root = TEMPLATE_NONE;
	int r = template_make(p, &root, e);
	if (r < 0)
		return r;
	const struct kit_spec kit = {.policy = p,
	        .root = &root,
	        .limits = &limits,
	        .base = s->base,
	        .name = "canary",
	        .tree = s->tree,
	        .closer = s->closer};
	const struct launch_program first = {.exec = 1, .memfd = memfd};
	const struct launch_bind bind = {.source = program, .target = CANARY_PATH};
	struct launch_spec spec = {.policy = p,
	        .limits = &limits,
	        .root = &root,
	        .kit = kit_make(&kit, e),
	        .workspace = workspace,
	        .home = -1,
	        .agent = -1,
	        .binds = &bind,
	        .nbinds = 1,
	        .init_memfd = s->init,
	        .program = &first};
	r = spec.kit ? launch_jail(&spec, ret, e) : e->code;
	template_done(&root);
	return r;
}

static void clear_scratch(int dir)
{
	auto_close int fd = openat(dir, scratch, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		(void)unlinkat(fd, CANARY_FILE, 0);
	(void)unlinkat(dir, scratch, AT_REMOVEDIR);
}

/* A directory as sessions have them.  One that a killed daemon left is made anew. */
static int make_scratch(int dir, struct err *e)
{
	const uid_t owner = ID_STORE_BASE + ID_INNER_AGENT;
	clear_scratch(dir);
	if (mkdirat(dir, scratch, 0700) < 0)
		return err_errno(e, "layer idmap: a directory for the canary");
	auto_close int fd = openat(dir, scratch, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchown(fd, owner, owner) < 0)
		return err_errno(e, "layer idmap: the canary's directory");
	return take_fd(fd);
}

static int test(const struct selftest_spec *s, uint32_t flags, struct findings *f, struct err *e)
{
	auto_free struct policy *p = xnew(struct policy);
	*p = (struct policy){
	        .root = POLICY_ROOT_HOST_USR, .flags = flags, .ninsns = s->policy->ninsns};
	(void)str_copy(p->name, sizeof(p->name), "canary");
	memcpy(p->bpf, s->policy->bpf, sizeof(p->bpf));
	auto_close int workspace = make_scratch(s->dir, e);
	if (workspace < 0)
		return workspace;
	struct launched j = {.pid = -1};
	int r = launch(s, p, workspace, &j, e);
	if (r == 0) {
		r = observe(s, &j, workspace, f, e);
		launched_free(&j);
	}
	clear_scratch(s->dir);
	return r;
}

/* ---- the verdict ---- */

static void judge(const struct findings *f, struct host *h)
{
	for (int l = 0; l < LAYER_COUNT; l++) {
		uint32_t bit = LAYER_BIT(l);
		if (!((h->layers | h->fallback) & bit) || (f->looked & ~f->broken & bit))
			continue;
		h->disproved |= bit;
		(void)snprintf(h->detail[l], LAYER_TEXT_MAX, "self-test: %.180s",
		        f->looked & bit ? f->text[l] : "nobody looked");
		(void)str_copy(h->remedy[l], LAYER_TEXT_MAX,
		        "start agentboxd under no seccomp filter, tracer, LSM or emulator that "
		        "answers for Linux");
	}
	h->layers &= ~h->disproved;
	h->fallback &= ~h->disproved;
}

void selftest_run(const struct selftest_spec *s, struct host *h)
{
	auto_free struct findings *f = xnew(struct findings);
	struct err e = {0};
	int64_t begun = clock_mono_us();
	bool own = h->layers & LAYER_BIT(LAYER_INODES);
	int r = test(s, own ? POLICY_PRIVATE_FILES : 0, f, &e);
	h->selftest_us = clock_mono_us() - begun;
	h->disproved = 0;
	h->unproven[0] = '\0';
	if (r == 0)
		judge(f, h);
	else
		(void)snprintf(h->unproven, sizeof(h->unproven), "%s", e.text);
}
