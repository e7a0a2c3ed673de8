#include "jail/layout.h"
#include "base/dir.h"
#include "base/fd.h"
#include "base/mem.h"
#include "jail/child.h"
#include "proto/build.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long the lock of a dead holder is waited for. */
enum { LOCK_TRIES = 100, LOCK_PAUSE_MS = 50, BUILD_MS = 10000 };

/* ---- programs ---- */

/* Where another file has taken our name already, the kernel marks that name. */
static char *own_path(struct err *e)
{
	static const char mark[] = " (deleted)";
	const size_t len = sizeof(mark) - 1;
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (n <= 0) {
		(void)err_errno(e, "/proc/self/exe");
		return NULL;
	}
	path[n] = '\0';
	if ((size_t)n > len && strcmp(path + n - len, mark) == 0 && access(path, F_OK) < 0)
		path[(size_t)n - len] = '\0';
	return xstrdup(path);
}

/* First of the directories that has `name`; owned, or NULL. */
static char *look_for(const char *const *dirs, const char *name, int mode)
{
	for (; *dirs; dirs++) {
		auto_free char *path = xasprintf("%s/%s", *dirs, name);
		char *real = access(path, mode) == 0 ? realpath(path, NULL) : NULL;
		if (real)
			return real;
	}
	return NULL;
}

static int find_programs(struct programs *p, const char *own, const char *libexec, struct err *e)
{
	auto_free char *installed = xasprintf("%s/../lib/agentbox", own);
	const char *const beside[] = {own, installed, NULL};
	const char *const named[] = {libexec, NULL};
	const char *const *dirs = libexec ? named : beside;
	const struct {
		const char *name;
		char **to;
	} wanted[] = {
	        {"agentbox-policyc", &p->policyc},
	        {"agentbox-supervisor", &p->supervisor},
	        {"agentbox-egress", &p->egress},
	        {"agentbox-listener", &p->listener},
	        {"agentbox-authority", &p->authority},
	        {"agentbox-init", &p->init},
	        {"agentbox-worker", &p->worker},
	        {"agentbox-acp", &p->acp},
	        {"agentbox-canary", &p->canary},
	};
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		*wanted[i].to = look_for(dirs, wanted[i].name, X_OK);
		if (!*wanted[i].to)
			return err_set(e, -ENOENT, "program %s is neither in %s nor in %s",
			        wanted[i].name, dirs[0], dirs[1] ? dirs[1] : "any other place");
	}
	return 0;
}

static int find_share(struct programs *p, const char *own, const char *share, struct err *e)
{
	/* build/<mode>/bin, build/<mode>/<kind>/bin and PREFIX/sbin. */
	auto_free char *tree = xasprintf("%s/../../..", own);
	auto_free char *deep = xasprintf("%s/../../../..", own);
	auto_free char *installed = xasprintf("%s/../share/agentbox", own);
	const char *const beside[] = {installed, tree, deep, NULL};
	const char *const named[] = {share, NULL};
	auto_free char *harnesses = look_for(share ? named : beside, "harnesses", R_OK | X_OK);
	if (!harnesses)
		return err_set(e, -ENOENT,
		        "no directory harnesses/ in %s; name its parent with "
		        "--share",
		        share ? share : installed);
	p->share = xstrndup(harnesses, (size_t)(strrchr(harnesses, '/') - harnesses));
	return 0;
}

int programs_find(struct programs *p, const char *libexec, const char *share, struct err *e)
{
	memset(p, 0, sizeof(*p));
	p->self = own_path(e);
	if (!p->self)
		return e ? e->code : -EIO;
	size_t n = (size_t)(strrchr(p->self, '/') - p->self);
	auto_free char *own = xstrndup(p->self, n ? n : 1);
	int r = find_programs(p, own, libexec, e);
	if (r == 0)
		r = find_share(p, own, share, e);
	if (r < 0)
		programs_done(p);
	return r;
}

static int same_build(const char *path, const char *name, struct err *e)
{
	auto_buf struct buf said = BUF_INIT(1024);
	const char *const argv[] = {name, "--build", build_id(), NULL};
	const struct child_spec spec = {.path = path, .argv = argv};
	int status = child_run(&spec, BUILD_MS, &said, e);
	if (status < 0)
		return status;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	char how[32];
	child_status_text(status, how);
	return err_set(e, -EIO, "%s: %s: %.*s", path, how, (int)strcspn(said.p ? said.p : "", "\n"),
	        said.p ? said.p : "it gives no reason");
}

int programs_same_build(const struct programs *p, struct err *e)
{
	int r = same_build(p->supervisor, "agentbox-supervisor", e);
	if (r == 0)
		r = same_build(p->egress, "agentbox-egress", e);
	return r < 0 ? r : same_build(p->listener, "agentbox-listener", e);
}

void programs_done(struct programs *p)
{
	free(p->self);
	free(p->policyc);
	free(p->supervisor);
	free(p->egress);
	free(p->listener);
	free(p->authority);
	free(p->init);
	free(p->worker);
	free(p->acp);
	free(p->canary);
	free(p->share);
	memset(p, 0, sizeof(*p));
}

bool program_changed(const char *path, const struct stat *was)
{
	struct stat now;
	if (stat(path, &now) < 0)
		return false;
	return now.st_dev != was->st_dev || now.st_ino != was->st_ino ||
	       now.st_size != was->st_size || now.st_mtim.tv_sec != was->st_mtim.tv_sec ||
	       now.st_mtim.tv_nsec != was->st_mtim.tv_nsec;
}

/* ---- trust ---- */

int root_owned(int fd, const char *what, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_errno(e, "%s", what);
	if (st.st_uid != 0)
		return err_set(e, -EPERM, "%s belongs to uid %u, not to root: chown root it", what,
		        st.st_uid);
	if (st.st_mode & 022)
		return err_set(e, -EPERM, "%s may be written by others (mode %04o): chmod go-w it",
		        what, st.st_mode & 07777);
	return 0;
}

/* ---- state ---- */

/* Every missing directory on the way; the last one 0700. */
static int make_path(const char *path, struct err *e)
{
	auto_free char *copy = xstrdup(path);
	for (char *p = copy + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(copy, 0755) < 0 && errno != EEXIST)
			return err_errno(e, "mkdir %s", copy);
		*p = '/';
	}
	if (mkdir(copy, 0700) < 0 && errno != EEXIST)
		return err_errno(e, "mkdir %s", copy);
	return 0;
}

static int open_dir_at(int dir, const char *name, mode_t mode, struct err *e)
{
	if (mkdirat(dir, name, mode) < 0 && errno != EEXIST)
		return err_errno(e, "mkdir %s", name);
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_errno(e, "%s", name) : fd;
}

static int own_dir_at(int dir, const char *name, int *ret, struct err *e)
{
	auto_close int fd = open_dir_at(dir, name, 0700, e);
	if (fd < 0)
		return fd;
	int r = root_owned(fd, name, e);
	if (r < 0)
		return r;
	*ret = take_fd(fd);
	return 0;
}

/* The pid that the holder of the lock wrote; "" where there is none. */
static void lock_holder(int fd, char pid[24])
{
	ssize_t n = pread(fd, pid, 23, 0);
	pid[n < 0 ? 0 : n] = '\0';
	pid[strcspn(pid, "\n")] = '\0';
}

/* A predecessor that was killed while it started a process leaves the lock to that child until the
 * child's exec or end: milliseconds, so a dead holder is waited for. */
static bool holder_is_dead(const char *pid)
{
	long n = strtol(pid, NULL, 10);
	return n > 0 && n <= INT_MAX && kill((pid_t)n, 0) < 0 && errno == ESRCH;
}

/* flock and not a pid file alone: it is gone with its holder, however that ended. */
static int take_lock(struct state *s, struct err *e)
{
	auto_close int fd =
	        openat(s->dir, "agentboxd.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_errno(e, "agentboxd.lock");
	char pid[24] = "";
	for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; tries++) {
		if (errno != EWOULDBLOCK)
			return err_errno(e, "flock");
		lock_holder(fd, pid);
		if (tries == LOCK_TRIES || !holder_is_dead(pid))
			return err_set(e, -EBUSY, "another agentboxd uses it (pid %s)",
			        pid[0] ? pid : "unknown");
		const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000L};
		nanosleep(&pause, NULL);
	}
	int n = snprintf(pid, sizeof(pid), "%d\n", getpid());
	if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)n, 0) != n)
		return err_errno(e, "agentboxd.lock");
	s->lock = take_fd(fd);
	return 0;
}

/* Ours has our lock, or nothing but what may be put there before the first start.  A typing error
 * such as `--state /etc` must not fill a directory of somebody else's. */
static int check_ours(int dir, struct err *e)
{
	if (faccessat(dir, "agentboxd.lock", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	/* file systems may have been mounted for these */
	static const char *const may[] = {
	        "agents", "sessions", "snapshots", "supervisor", "trash", "lost+found"};
	char other[DIR_NAME_SHOWN];
	int r = dir_stranger(dir, may, ARRAY_LEN(may), other);
	if (r > 0)
		return err_set(e, -ENOTEMPTY,
		        "it is not empty and no state directory of agentboxd ('%s' is there): name "
		        "one that is new or empty",
		        other);
	return r < 0 ? err_set(e, r, "reading it: %s", strerror(-r)) : 0;
}

static int open_state(struct state *s, struct err *e)
{
	int r = make_path(s->path, e);
	if (r < 0)
		return r;
	s->dir = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir < 0)
		return err_errno(e, "open");
	r = root_owned(s->dir, "it", e);
	if (r == 0)
		r = check_ours(s->dir, e);
	if (r == 0)
		r = take_lock(s, e);
	if (r == 0)
		r = own_dir_at(s->dir, "sessions", &s->sessions, e);
	if (r == 0)
		r = own_dir_at(s->dir, "trash", &s->trash, e);
	if (r == 0)
		r = own_dir_at(s->dir, "snapshots", &s->snapshots, e);
	return r;
}

void state_resume(struct state *s, const char *path)
{
	s->path = xstrdup(path);
	size_t n = strlen(s->path);
	while (n > 1 && s->path[n - 1] == '/')
		s->path[--n] = '\0';
}

int state_open(struct state *s, const char *path, struct err *e)
{
	*s = (struct state)STATE_NONE;
	state_resume(s, path);
	int r = open_state(s, e);
	if (r < 0) {
		(void)err_wrap(e, "state directory %s", path);
		state_close(s);
	}
	return r;
}

/* Only the directory itself and, at its making, what is empty in it: never a tree by path. */
static int give_dir(int fd, const char *name, uid_t uid, gid_t gid, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_errno(e, "%s", name);
	if (st.st_uid == uid && st.st_gid == gid && (st.st_mode & 07777) == 0700)
		return 0;
	if (st.st_uid != 0 && st.st_uid != uid)
		return err_set(e, -EPERM,
		        "%s belongs to uid %u, but the supervisor runs as %u: "
		        "chown -R %u:%u it",
		        name, st.st_uid, uid, uid, gid);
	if (fchown(fd, uid, gid) < 0 || fchmod(fd, 0700) < 0)
		return err_errno(e, "giving %s to uid %u", name, uid);
	return 0;
}

int state_give(struct state *s, uid_t uid, gid_t gid, struct err *e)
{
	fd_close(take_fd(s->supervisor));
	auto_close int fd = open_dir_at(s->dir, "supervisor", 0700, e);
	if (fd < 0)
		return fd;
	/* Its parent is 0700 root's: the supervisor reaches this by the descriptor only. */
	static const char *const parts[] = {"events", "artifacts"};
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		auto_close int part = open_dir_at(fd, parts[i], 0700, e);
		int r = part < 0 ? part : give_dir(part, parts[i], uid, gid, e);
		if (r < 0)
			return r;
	}
	int r = give_dir(fd, "supervisor", uid, gid, e);
	if (r == 0)
		s->supervisor = take_fd(fd);
	return r;
}

int state_given(const char *path, uid_t uid, gid_t gid, struct err *e)
{
	auto_free char *dir = xasprintf("%s/supervisor", path);
	struct stat st;
	if (stat(dir, &st) < 0)
		return err_errno(e, "%s", dir);
	return st.st_uid == uid && st.st_gid == gid
	               ? 0
	               : err_set(e, -EPERM,
	                         "%s belongs to %u:%u and the configuration names %u:%u for the "
	                         "supervisor: that takes a restart",
	                         dir, st.st_uid, st.st_gid, uid, gid);
}

void state_close(struct state *s)
{
	fd_close(s->supervisor);
	fd_close(s->sessions);
	fd_close(s->trash);
	fd_close(s->snapshots);
	fd_close(s->lock);
	fd_close(s->dir);
	free(s->path);
	*s = (struct state)STATE_NONE;
}
