/*
 * Theory of operation: the daemon's subtree holds no process itself, only
 * jails, the leaf of the workers and nothing else, so that controllers may be
 * enabled for its children ("no internal processes").  It is made at the root of the
 * hierarchy, or, when the unit's cgroup is delegated to us (trusted.delegate,
 * set by systemd for Delegate=yes), inside that: then everything living in the
 * unit's cgroup moves to a leaf of its own first.  Those writes to cgroup.procs
 * happen once, at start.
 */
#include "jail/cgroup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum {
	FILE_MAX = 64 << 10,        /* a cgroup file or mountinfo of a host with many mounts */
	REMOVE_WAIT_MS = 2000,      /* a killed jail is empty in 12 ms with 200 processes */
	WORKERS_MEMORY = 256 << 20, /* listing 200,000 entries needs a few MB */
	WORKERS_PIDS = 512,
	MEMORY_PIDS = 1024, /* of a jail that is looked at process by process */
	LOOK_MS = 1,
	MOVE_ROUNDS = 500, /* two seconds: the end of a process of gigabytes is half of one */
	MOVE_PAUSE_MS = 4,
};

#define LEAF    "daemon" /* where agentboxd and its children live in a delegated unit */
#define WORKERS "workers"
/* Ten times a sibling, which is all jails together: a jail that spins must not keep others waiting
 * for us.  What it does not use is theirs. */
#define LEAF_WEIGHT "1000"

static const struct {
	uint32_t bit;
	const char *name;
} controllers[] = {
        {CGROUP_MEMORY, "memory"},
        {CGROUP_PIDS, "pids"},
        {CGROUP_CPU, "cpu"},
        {CGROUP_IO, "io"},
};

/* ---- files ---- */

static int write_file(int dirfd, const char *name, const char *text)
{
	auto_close int fd = openat(dirfd, name, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fd_write_all(fd, text, strlen(text));
}

static int read_file(int dirfd, const char *name, char **ret)
{
	return file_slurp_at(dirfd, name, FILE_MAX, ret, NULL);
}

/* The number behind `key` at the start of a line, or 0. */
static uint64_t key_value(const char *text, const char *key)
{
	size_t n = strlen(key);
	for (const char *line = text; line && *line;) {
		if (strncmp(line, key, n) == 0 && line[n] == ' ')
			return strtoull(line + n + 1, NULL, 10);
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return 0;
}

static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = text; (p = strstr(p, word)); p += n) {
		bool starts = p == text || p[-1] == ' ';
		if (starts && (p[n] == '\0' || p[n] == ' ' || p[n] == '\n'))
			return true;
	}
	return false;
}

static uint32_t controllers_in(int dirfd, const char *file)
{
	auto_free char *text = NULL;
	uint32_t bits = 0;
	if (read_file(dirfd, file, &text) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(controllers); i++) {
		if (has_word(text, controllers[i].name))
			bits |= controllers[i].bit;
	}
	return bits;
}

/* One at a time: a controller that cannot be enabled must not keep the others away. */
static void enable_controllers(int dirfd)
{
	for (size_t i = 0; i < ARRAY_LEN(controllers); i++) {
		char text[16];
		(void)snprintf(text, sizeof(text), "+%s", controllers[i].name);
		(void)!write_file(dirfd, "cgroup.subtree_control", text);
	}
}

/* ---- where we are ---- */

/* Mount point of cgroup2: field 5 of the mountinfo line whose type is cgroup2. */
static int find_mount(char ret[CGROUP_PATH_MAX], struct err *e)
{
	auto_free char *text = NULL;
	int r = file_slurp("/proc/self/mountinfo", 16 << 20, &text, NULL);
	if (r < 0)
		return err_set(e, r, "layer cgroup: /proc/self/mountinfo: %s", strerror(-r));
	char *rest = text;
	for (char *line; (line = strsep(&rest, "\n"));) {
		if (!strstr(line, " - cgroup2 "))
			continue;
		char *field = line;
		for (int i = 0; i < 4 && field; i++)
			strsep(&field, " ");
		char *path = field ? strsep(&field, " ") : NULL;
		if (path && str_copy(ret, CGROUP_PATH_MAX, path))
			return 0;
	}
	return err_set(e, -ENOENT,
	        "layer cgroup: no cgroup2 mount; remedy: mount -t cgroup2 cgroup2 /sys/fs/cgroup "
	        "(or boot with systemd.unified_cgroup_hierarchy=1)");
}

static int own_path(char ret[CGROUP_PATH_MAX], struct err *e)
{
	auto_free char *text = NULL;
	int r = file_slurp("/proc/self/cgroup", FILE_MAX, &text, NULL);
	char *line = r < 0 ? NULL : strstr(text, "0::/");
	if (!line)
		return err_set(
		        e, r < 0 ? r : -ENOENT, "layer cgroup: /proc/self/cgroup has no 0:: line");
	line += 3;
	line[strcspn(line, "\n")] = '\0';
	return str_copy(ret, CGROUP_PATH_MAX, line)
	               ? 0
	               : err_set(e, -ENAMETOOLONG, "layer cgroup: own cgroup's path");
}

static bool delegated(const char *path)
{
	char value[8];
	return getxattr(path, "trusted.delegate", value, sizeof(value)) > 0 ||
	       getxattr(path, "user.delegate", value, sizeof(value)) > 0;
}

static bool is_true_root(const char *path)
{
	char file[CGROUP_PATH_MAX + 16];
	(void)snprintf(file, sizeof(file), "%s/cgroup.events", path);
	return access(file, F_OK) < 0; /* every cgroup but the root has it */
}

/* Everyone in `dir` moves to its leaf; repeated because they may fork meanwhile, and after a while
 * where somebody is on its way out: it is listed, cannot be moved, and needs the processor that we
 * are on.  "0" is somebody
 * of an outer pid namespace, as when a container is entered from outside: no number of ours names
 * it (written back, it would mean ourselves).  Where it stays, the kernel refuses the controllers,
 * and each policy decides whether it can do without. */
static int move_to_leaf(int dir, struct err *e)
{
	if (mkdirat(dir, LEAF, 0755) < 0 && errno != EEXIST)
		return err_errno(e, "layer cgroup: leaf '" LEAF "'");
	const struct timespec pause = {.tv_nsec = MOVE_PAUSE_MS * 1000000L};
	for (int round = 0; round < MOVE_ROUNDS; round++) {
		if (round > 1)
			(void)nanosleep(&pause, NULL);
		auto_free char *text = NULL;
		int r = read_file(dir, "cgroup.procs", &text);
		if (r < 0)
			return err_set(e, r, "layer cgroup: cgroup.procs: %s", strerror(-r));
		bool anyone = false;
		char *rest = text;
		for (char *pid; (pid = strsep(&rest, "\n"));) {
			if (!*pid || strcmp(pid, "0") == 0)
				continue;
			anyone = true;
			r = write_file(dir, LEAF "/cgroup.procs", pid);
			if (r < 0 && r != -ESRCH)
				return err_set(
				        e, r, "layer cgroup: moving to the leaf: %s", strerror(-r));
		}
		if (!anyone)
			return 0;
	}
	return err_set(e, -EBUSY, "layer cgroup: processes keep appearing in the unit's cgroup");
}

/* The directory to make the subtree in; *ret_move tells that its processes must move. */
static int find_parent(char path[CGROUP_PATH_MAX], bool *ret_move, struct err *e)
{
	char mount[CGROUP_PATH_MAX], own[CGROUP_PATH_MAX] = "";
	int r = find_mount(mount, e);
	if (r == 0)
		r = own_path(own, e);
	if (r < 0)
		return r;
	if (snprintf(path, CGROUP_PATH_MAX, "%s%s", mount, own[1] ? own : "") >= CGROUP_PATH_MAX)
		return err_set(e, -ENAMETOOLONG, "layer cgroup: own cgroup's path");
	*ret_move = true;
	if (!own[1]) {
		*ret_move = !is_true_root(path);
		return 0;
	}
	if (delegated(path))
		return 0;
	char *slash = strrchr(path, '/'); /* we may live in the leaf already */
	*slash = '\0';
	if (strcmp(slash + 1, LEAF) == 0 && delegated(path))
		return 0;
	(void)str_copy(path, CGROUP_PATH_MAX, mount);
	*ret_move = false;
	return 0;
}

/* ---- the daemon's subtree ---- */

static int open_dir(int at, const char *name, struct err *e)
{
	if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
		return err_errno(e,
		        "layer cgroup: making '%s' (remedy: run as root, or Delegate=yes in the "
		        "unit)",
		        name);
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_errno(e, "layer cgroup: %s", name) : fd;
}

static void note_missing(struct cgroup_tree *t)
{
	size_t at = 0;
	for (size_t i = 0; i < ARRAY_LEN(controllers); i++) {
		if (t->controllers & controllers[i].bit)
			continue;
		int n = snprintf(t->missing + at, sizeof(t->missing) - at, "%s%s",
		        at ? ", " : "no controller in cgroup2: ", controllers[i].name);
		if (n > 0 && (size_t)n < sizeof(t->missing) - at)
			at += (size_t)n;
	}
}

/* Workers get a ceiling of their own where there is one. */
static void limit_workers(const struct cgroup_tree *t)
{
	char text[32];
	(void)snprintf(text, sizeof(text), "%d", WORKERS_MEMORY);
	if (t->controllers & CGROUP_MEMORY)
		(void)!write_file(t->workers, "memory.max", text);
	(void)snprintf(text, sizeof(text), "%d", WORKERS_PIDS);
	if (t->controllers & CGROUP_PIDS)
		(void)!write_file(t->workers, "pids.max", text);
}

int cgroup_tree_open(const char *name, struct cgroup_tree *ret, struct err *e)
{
	struct cgroup_tree t = {.dirfd = -1, .workers = -1};
	bool move = false;
	char parent_path[CGROUP_PATH_MAX];
	int r = find_parent(parent_path, &move, e);
	if (r < 0)
		return r;
	auto_close int parent = open(parent_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return err_errno(e, "layer cgroup: %s", parent_path);
	if (move) {
		r = move_to_leaf(parent, e);
		if (r < 0)
			return r;
	}
	enable_controllers(parent);
	if (move) /* ENOENT: no cpu controller */
		(void)!write_file(parent, LEAF "/cpu.weight", LEAF_WEIGHT);
	auto_close int dir = open_dir(parent, name, e);
	if (dir < 0)
		return dir;
	if (faccessat(dir, "cgroup.kill", W_OK, 0) < 0)
		return err_set(
		        e, -ENOSYS, "layer cgroup: no cgroup.kill; remedy: Linux 5.14 or newer");
	enable_controllers(dir);
	t.controllers = controllers_in(dir, "cgroup.subtree_control");
	auto_close int workers = open_dir(dir, WORKERS, e);
	if (workers < 0)
		return workers;
	if (snprintf(t.path, sizeof(t.path), "%s/%s", parent_path, name) >= (int)sizeof(t.path))
		return err_set(e, -ENAMETOOLONG, "layer cgroup: %s/%s", parent_path, name);
	t.dirfd = take_fd(dir);
	t.workers = take_fd(workers);
	note_missing(&t);
	limit_workers(&t);
	*ret = t;
	return 0;
}

int cgroup_sweep(const struct cgroup_tree *t, const char *name, int timeout_ms, struct err *e)
{
	struct cgroup c = CGROUP_NONE;
	auto_close int dir =
	        openat(t->dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return errno == ENOENT ? 0 : err_errno(e, "layer cgroup: leftover '%s'", name);
	auto_close int events = openat(dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
	c.dirfd = dir;
	c.events = events;
	(void)str_copy(c.name, sizeof(c.name), name);
	int r = cgroup_kill(&c, e);
	if (r == 0)
		r = cgroup_wait_empty(&c, timeout_ms);
	if (r < 0)
		return err_set(e, r, "layer cgroup: leftover '%s' does not end", name);
	if (unlinkat(t->dirfd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return err_errno(e, "layer cgroup: leftover '%s'", name);
	return 0;
}

/* A cgroup that was killed once must not be used again: CLONE_INTO_CGROUP compares the kill count
 * of the target with that of the *caller's* cgroup and, where they differ, kills the child before
 * its first instruction (seen on 6.18).  So the workers' leaf is made anew. */
static int renew_workers(struct cgroup_tree *t, struct err *e)
{
	fd_close(take_fd(t->workers));
	t->workers = open_dir(t->dirfd, WORKERS, e);
	if (t->workers < 0)
		return t->workers;
	limit_workers(t);
	return 0;
}

int cgroup_tree_sweep(struct cgroup_tree *t, int timeout_ms, struct err *e)
{
	int fd = openat(t->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return err_errno(e, "layer cgroup: %s", t->path);
	int r = 0;
	for (struct dirent *entry; r == 0 && (entry = readdir(d));) {
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			r = cgroup_sweep(t, entry->d_name, timeout_ms, e);
	}
	closedir(d);
	return r < 0 ? r : renew_workers(t, e);
}

void cgroup_tree_close(struct cgroup_tree *t)
{
	if (t->dirfd < 0)
		return;
	(void)unlinkat(
	        t->dirfd, WORKERS, AT_REMOVEDIR); /* EBUSY: a worker lives; the next start sweeps */
	(void)rmdir(t->path);
	fd_close(take_fd(t->workers));
	fd_close(take_fd(t->dirfd));
}

/* ---- one jail ---- */

static int set_value(const struct cgroup *c, const char *file, uint64_t value, struct err *e)
{
	char text[32] = "max";
	if (value)
		(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	int r = write_file(c->dirfd, file, text);
	return r < 0 ? err_set(e, r, "layer cgroup: %s=%s: %s", file, text, strerror(-r)) : 0;
}

/* memory.max without memory.high: without swap there is little to reclaim below the limit, and a
 * job at `high` crawls for minutes instead of ending with "oom". */
static int limit_memory(const struct cgroup *c, const struct limits *l, struct err *e)
{
	int r = set_value(c, "memory.max", l->memory_bytes, e);
	if (r == 0)
		r = set_value(c, "memory.oom.group", 1, e);
	/* Absent without CONFIG_SWAP: then there is no swap to forbid. */
	int swap = write_file(c->dirfd, "memory.swap.max", "0");
	if (r == 0 && swap < 0 && swap != -ENOENT)
		r = err_set(e, swap, "layer cgroup: memory.swap.max: %s", strerror(-swap));
	return r;
}

static int limit_cpu(const struct cgroup *c, const struct limits *l, struct err *e)
{
	enum { PERIOD_US = 100000 }; /* the kernel's default */
	char text[64] = "max 100000";
	if (l->cpu_milli)
		(void)snprintf(text, sizeof(text), "%llu %d",
		        (unsigned long long)l->cpu_milli * (PERIOD_US / 1000), PERIOD_US);
	int r = write_file(c->dirfd, "cpu.max", text);
	return r < 0 ? err_set(e, r, "layer cgroup: cpu.max=%s: %s", text, strerror(-r)) : 0;
}

static void io_value(char *out, size_t size, uint64_t v)
{
	(void)snprintf(out, size, v ? "%llu" : "max", (unsigned long long)v);
}

static int limit_io(
        const struct cgroup_tree *t, const struct cgroup *c, const struct limits *l, struct err *e)
{
	if (!t->io_device[0] || (!l->io_read_bps && !l->io_write_bps))
		return 0;
	char read_bps[24], write_bps[24], text[96];
	io_value(read_bps, sizeof(read_bps), l->io_read_bps);
	io_value(write_bps, sizeof(write_bps), l->io_write_bps);
	(void)snprintf(text, sizeof(text), "%s rbps=%s wbps=%s", t->io_device, read_bps, write_bps);
	int r = write_file(c->dirfd, "io.max", text);
	return r < 0 ? err_set(e, r, "layer cgroup: io.max '%s': %s", text, strerror(-r)) : 0;
}

void cgroup_tree_io_device(struct cgroup_tree *t, int fd)
{
	struct stat st;
	t->io_device[0] = '\0';
	if (fstat(fd, &st) < 0 || major(st.st_dev) == 0)
		return; /* btrfs, overlay, tmpfs: no device of its own to limit */
	char path[96];
	auto_free char *text = NULL;
	(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", major(st.st_dev),
	        minor(st.st_dev));
	const char *disk =
	        access(path, F_OK) == 0 ? "../dev" : "dev"; /* io.max takes whole disks */
	(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s", major(st.st_dev),
	        minor(st.st_dev), disk);
	if (file_slurp(path, sizeof(t->io_device) - 1, &text, NULL) < 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	(void)str_copy(t->io_device, sizeof(t->io_device), text);
}

int cgroup_limit(
        const struct cgroup_tree *t, const struct cgroup *c, const struct limits *l, struct err *e)
{
	int r = 0;
	if (t->controllers & CGROUP_MEMORY)
		r = limit_memory(c, l, e);
	if (r == 0 && t->controllers & CGROUP_PIDS)
		r = set_value(c, "pids.max", l->pids, e);
	if (r == 0 && t->controllers & CGROUP_CPU)
		r = limit_cpu(c, l, e);
	if (r == 0 && t->controllers & CGROUP_IO)
		r = limit_io(t, c, l, e);
	return r;
}

uint32_t cgroup_limits_in_force(const struct cgroup_tree *t)
{
	uint32_t layers = 0;
	if (t->controllers & CGROUP_MEMORY)
		layers |= LAYER_BIT(LAYER_LIMIT_MEMORY);
	if (t->controllers & CGROUP_PIDS)
		layers |= LAYER_BIT(LAYER_LIMIT_PIDS);
	if (t->controllers & CGROUP_CPU)
		layers |= LAYER_BIT(LAYER_LIMIT_CPU);
	if (t->controllers & CGROUP_IO && t->io_device[0])
		layers |= LAYER_BIT(LAYER_LIMIT_IO);
	return layers;
}

int cgroup_make(const struct cgroup_tree *t, const char *name, const struct limits *l,
        struct cgroup *ret, struct err *e)
{
	struct cgroup c = CGROUP_NONE;
	if (!*name || strchr(name, '/') || name[0] == '.' ||
	        !str_copy(c.name, sizeof(c.name), name))
		return err_set(e, -EINVAL, "layer cgroup: '%s' is no name", name);
	if (mkdirat(t->dirfd, name, 0755) < 0)
		return err_errno(e, "layer cgroup: %s/%s", t->path, name);
	c.dirfd = openat(t->dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = c.dirfd < 0 ? err_errno(e, "layer cgroup: %s/%s", t->path, name) : 0;
	if (r == 0) {
		c.events = openat(c.dirfd, "cgroup.events", O_RDONLY | O_CLOEXEC);
		if (c.events < 0)
			r = err_errno(e, "layer cgroup: %s/cgroup.events", name);
	}
	/* Nothing inside ever gets a cgroup of its own. */
	int max = r < 0 ? 0 : write_file(c.dirfd, "cgroup.max.descendants", "0");
	if (max < 0)
		r = err_set(e, max, "layer cgroup: cgroup.max.descendants: %s", strerror(-max));
	if (r == 0)
		r = cgroup_limit(t, &c, l, e);
	if (r < 0) {
		cgroup_remove(t, &c);
		return r;
	}
	*ret = c;
	return 0;
}

int cgroup_kill(const struct cgroup *c, struct err *e)
{
	int r = write_file(c->dirfd, "cgroup.kill", "1");
	return r < 0 ? err_set(e, r, "layer cgroup: killing '%s': %s", c->name, strerror(-r)) : 0;
}

int cgroup_freeze(const struct cgroup *c, bool on, struct err *e)
{
	int r = write_file(c->dirfd, "cgroup.freeze", on ? "1" : "0");
	return r < 0 ? err_set(e, r, "layer cgroup: freezing '%s': %s", c->name, strerror(-r)) : 0;
}

int cgroup_populated(const struct cgroup *c)
{
	char text[256];
	ssize_t n = fd_pread_full(c->events, text, sizeof(text) - 1, 0);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	return key_value(text, "populated") != 0;
}

int cgroup_wait_empty(const struct cgroup *c, int timeout_ms)
{
	int64_t end = clock_mono_ms() + timeout_ms;
	for (;;) {
		int r = cgroup_populated(c);
		if (r <= 0)
			return r;
		int64_t left = end - clock_mono_ms();
		if (left <= 0)
			return -ETIMEDOUT;
		struct pollfd p = {.fd = c->events, .events = POLLPRI};
		/* The kernel tells of a change at most every 10 ms: look between its notices. */
		if (poll(&p, 1, left < LOOK_MS ? (int)left : LOOK_MS) < 0 && errno != EINTR)
			return -errno;
	}
}

/* Sum of `key=` over the devices of io.stat. */
static uint64_t io_sum(const char *text, const char *key)
{
	uint64_t sum = 0;
	for (const char *p = text; (p = strstr(p, key)); p += strlen(key))
		sum += strtoull(p + strlen(key), NULL, 10);
	return sum;
}

static uint64_t read_number(int dirfd, const char *file)
{
	auto_free char *text = NULL;
	return read_file(dirfd, file, &text) < 0 ? 0 : strtoull(text, NULL, 10);
}

void cgroup_usage(const struct cgroup *c, struct jail_resources *ret, uint32_t *ret_oom_kills)
{
	struct jail_resources u = {0};
	auto_free char *cpu = NULL, *io = NULL, *memory = NULL;
	if (read_file(c->dirfd, "cpu.stat", &cpu) == 0)
		u.cpu_us = key_value(cpu, "usage_usec");
	u.memory_peak_bytes = read_number(c->dirfd, "memory.peak"); /* 5.19+ */
	u.pids_peak = read_number(c->dirfd, "pids.peak");           /* 6.10+ */
	if (read_file(c->dirfd, "io.stat", &io) == 0) {
		u.io_read_bytes = io_sum(io, "rbytes=");
		u.io_write_bytes = io_sum(io, "wbytes=");
	}
	if (ret_oom_kills) {
		*ret_oom_kills = 0;
		if (read_file(c->dirfd, "memory.events", &memory) == 0)
			*ret_oom_kills = (uint32_t)key_value(memory, "oom_kill");
	}
	*ret = u;
}

/* Of a process, from /proc: pages that are in memory. */
static uint64_t resident(const char *pid)
{
	char path[64];
	auto_free char *text = NULL;
	(void)snprintf(path, sizeof(path), "/proc/%.20s/statm", pid);
	if (read_file(AT_FDCWD, path, &text) < 0)
		return 0; /* it has ended */
	const char *second = strchr(text, ' ');
	return second ? strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

uint64_t cgroup_memory(const struct cgroup *c)
{
	auto_free char *pids = NULL;
	auto_free char *stat = NULL;
	uint64_t now = 0;
	if (read_file(c->dirfd, "memory.stat", &stat) == 0)
		return key_value(stat, "anon") + key_value(stat, "shmem");
	if (read_file(c->dirfd, "cgroup.procs", &pids) < 0)
		return 0;
	char *save = NULL;
	int left = MEMORY_PIDS;
	for (char *pid = strtok_r(pids, "\n", &save); pid; pid = strtok_r(NULL, "\n", &save)) {
		if (left-- == 0)
			return UINT64_MAX;
		now += resident(pid);
	}
	return now;
}

void cgroup_refused(const struct cgroup *c, uint64_t *ret_forks, uint64_t *ret_cpu_us)
{
	auto_free char *pids = NULL, *cpu = NULL;
	*ret_forks = read_file(c->dirfd, "pids.events", &pids) == 0 ? key_value(pids, "max") : 0;
	*ret_cpu_us =
	        read_file(c->dirfd, "cpu.stat", &cpu) == 0 ? key_value(cpu, "throttled_usec") : 0;
}

void cgroup_remove(const struct cgroup_tree *t, struct cgroup *c)
{
	if (!c->name[0])
		return;
	if (c->events >= 0 && cgroup_populated(c) != 0 && cgroup_kill(c, NULL) == 0)
		(void)!cgroup_wait_empty(c, REMOVE_WAIT_MS);
	fd_close(take_fd(c->events));
	fd_close(take_fd(c->dirfd));
	/* EBUSY when something could not be killed: see cgroup_sweep. */
	(void)unlinkat(t->dirfd, c->name, AT_REMOVEDIR);
	c->name[0] = '\0';
}
