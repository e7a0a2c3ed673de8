#include "abctl/agent_tree.h"
#include "abctl/fail.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/mem.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char record_name[] = "INSTALLED";
static const char making[] = ".install-", replaced[] = ".old-";

enum { RECORD_MAX = 16 << 10, DEPTH_MAX = 80, MOUNTS_MAX = 8 << 20, READ_SIZE = 256 << 10 };

/* ---- removing ---- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

/* Only what root alone can change is walked here: nobody puts a link in the way. */
static void remove_below(const struct agent_trees *t, const char *name)
{
	auto_free char *path = xasprintf("%s/%s", t->dir, name);
	(void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static int each_name(const struct agent_trees *t, const char *prefix,
        void (*call)(const struct agent_trees *t, const char *name, void *ctx), void *ctx)
{
	int fd = openat(t->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		fd_close(fd);
		return -errno;
	}
	for (const struct dirent *x; (x = readdir(d));)
		if (strncmp(x->d_name, prefix, strlen(prefix)) == 0)
			call(t, x->d_name, ctx);
	closedir(d);
	return 0;
}

static void remove_named(const struct agent_trees *t, const char *name, void *ctx)
{
	(void)ctx;
	remove_below(t, name);
}

/* ---- the directory ---- */

int agent_trees_open(struct agent_trees *t, const char *what, const char *dir, struct err *e)
{
	*t = (struct agent_trees){
	        .what = what, .dir = xstrdup(dir), .fd = -1, .lock = -1, .work_fd = -1};
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return err_errno(e, "making %s", dir);
	t->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	if (t->fd < 0 || fstat(t->fd, &st) < 0)
		return err_errno(e, "%s", dir);
	if (st.st_uid != 0 || st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(
		        e, -EPERM, "%s is not root's alone; remedy: chown root, chmod go-w", dir);
	t->lock = openat(t->fd, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (t->lock < 0)
		return err_errno(e, "%s/.lock", dir);
	if (flock(t->lock, LOCK_EX | LOCK_NB) < 0) {
		fail_note("another abctl is changing the %ss in %s: waiting for it", what, dir);
		if (flock(t->lock, LOCK_EX) < 0)
			return err_errno(e, "%s/.lock", dir);
	}
	int r = each_name(t, making, remove_named, NULL);
	return r < 0 ? err_set(e, r, "%s: %s", dir, strerror(-r)) : 0;
}

void agent_trees_close(struct agent_trees *t)
{
	fd_close(t->work_fd);
	if (t->work)
		remove_below(t, t->work);
	free(t->work);
	fd_close(t->lock);
	fd_close(t->fd);
	free(t->dir);
}

int agent_trees_begin(struct agent_trees *t, struct err *e)
{
	auto_free char *path = xasprintf("%s/%sXXXXXX", t->dir, making);
	if (!mkdtemp(path))
		return err_errno(e, "making a directory in %s", t->dir);
	t->work = xstrdup(strrchr(path, '/') + 1);
	t->work_fd = openat(t->fd, t->work, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (t->work_fd < 0 || mkdirat(t->work_fd, "new", 0755) < 0 ||
	        fchownat(t->work_fd, "new", ID_UNPACK, ID_UNPACK, AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(e, "%s", path);
	int fd = openat(t->work_fd, "new", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_errno(e, "%s/new", path) : fd;
}

/* ---- a tree ---- */

struct walk {
	struct digest *digest;
	struct agent_sum sum;
	bool seal; /* make it root's; else it has to be */
	struct err *e;
};

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int no_dots(const struct dirent *d)
{
	return strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
}

static int own(const struct walk *w, int fd, const struct stat *st, mode_t mode, const char *path)
{
	if (w->seal && (fchown(fd, 0, 0) < 0 || fchmod(fd, mode) < 0))
		return err_errno(w->e, "%s", path);
	if (!w->seal && (st->st_uid != 0 || st->st_mode & (S_IWGRP | S_IWOTH)))
		return err_set(w->e, -EPERM, "%s is not root's alone", path);
	return 0;
}

static int sum_file(struct walk *w, int fd, const char *path, bool executable)
{
	static char p[READ_SIZE]; /* one walk at a time */
	int64_t size = 0;
	digest_add(w->digest, path, strlen(path) + 1);
	digest_add(w->digest, executable ? "x" : "-", 1);
	for (ssize_t n; (n = fd_read_full(fd, p, sizeof(p))) != 0; size += n) {
		if (n < 0)
			return err_set(w->e, (int)n, "%s: %s", path, strerror((int)-n));
		digest_add(w->digest, p, (size_t)n);
	}
	digest_add(w->digest, &size, sizeof(size));
	w->sum.files++;
	w->sum.bytes += size;
	return 0;
}

static int walk_dir(struct walk *w, int dir, const char *path, int depth);

static int walk_one(struct walk *w, int dir, const char *name, const char *above, int depth)
{
	auto_free char *path = xasprintf("%s%s%s", above, *above ? "/" : "", name);
	auto_close int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(w->e, "%s", path);
	if (S_ISDIR(st.st_mode)) {
		int r = own(w, fd, &st, 0755, path);
		return r < 0 ? r : walk_dir(w, fd, path, depth + 1);
	}
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return err_set(w->e, -EBADMSG, "%s is no file of its own", path);
	bool executable = st.st_mode & S_IXUSR;
	int r = own(w, fd, &st, executable ? 0755 : 0644, path);
	return r < 0 ? r : sum_file(w, fd, path, executable);
}

static int walk_dir(struct walk *w, int dir, const char *path, int depth)
{
	if (depth > DEPTH_MAX)
		return err_set(w->e, -ELOOP, "%s is too deep", path);
	struct dirent **names = NULL;
	int n = scandirat(dir, ".", &names, no_dots, by_name);
	if (n < 0)
		return err_errno(w->e, "%s", *path ? path : "the tree");
	int r = 0;
	for (int i = 0; i < n; i++) {
		bool record = !*path && strcmp(names[i]->d_name, record_name) == 0;
		if (r == 0 && !record)
			r = walk_one(w, dir, names[i]->d_name, path, depth);
		free(names[i]);
	}
	free(names);
	return r;
}

static int walk(int tree, bool seal, struct agent_sum *ret, struct err *e)
{
	struct walk w = {.digest = digest_integrity_new(), .seal = seal, .e = e};
	struct stat st;
	int r = fstat(tree, &st) < 0 ? err_errno(e, "the tree")
	                             : own(&w, tree, &st, 0755, "the tree");
	if (r == 0)
		r = walk_dir(&w, tree, "", 0);
	digest_integrity_end(w.digest, w.sum.digest);
	*ret = w.sum;
	return r;
}

int agent_tree_seal(int tree, struct agent_sum *ret, struct err *e)
{
	return walk(tree, true, ret, e);
}

struct json *agent_trees_record(const struct agent_trees *t, const char *name, bool intact)
{
	auto_close int tree = openat(t->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_free char *text = NULL;
	size_t n = 0;
	struct err e = {0};
	if (tree < 0 || file_slurp_plain_at(tree, record_name, RECORD_MAX, &text, &n, &e) < 0)
		return NULL;
	auto_json struct json *record = json_parse(text, n, &e);
	struct agent_sum sum;
	if (!intact || !record)
		return take(record);
	if (walk(tree, false, &sum, &e) < 0)
		return NULL;
	return strcmp(json_str(record, "digest", ""), sum.digest) == 0 ? take(record) : NULL;
}

int agent_tree_write(int tree, const char *name, const struct buf *text, struct err *e)
{
	auto_close int fd =
	        openat(tree, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	/* One that came with the tree is not its maker's any more. */
	if (fd < 0 || fchown(fd, 0, 0) < 0 || fchmod(fd, 0644) < 0)
		return err_errno(e, "%s", name);
	int r = fd_write_all(fd, text->p, text->len);
	return r < 0 ? err_set(e, r, "%s: %s", name, strerror(-r)) : 0;
}

/* ---- its place ---- */

/* `from` of `dir`, the agent `name`, becomes one of those that were replaced. */
static int set_aside(
        struct agent_trees *t, int dir, const char *from, const char *name, struct err *e)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	auto_free char *to = xasprintf("%s%s-%llx%05lx", replaced, name, (long long)now.tv_sec,
	        (unsigned long)now.tv_nsec / 1000);
	return renameat2(dir, from, t->fd, to, RENAME_NOREPLACE) < 0
	               ? err_errno(e, "%s/%s", t->dir, to)
	               : 0;
}

int agent_trees_place(struct agent_trees *t, const char *name, struct err *e)
{
	/* On the disk before it is anybody's. */
	if (syncfs(t->work_fd) < 0)
		return err_errno(e, "syncing %s", t->dir);
	if (renameat2(t->work_fd, "new", t->fd, name, RENAME_NOREPLACE) == 0)
		return fsync(t->fd) < 0 ? err_errno(e, "syncing %s", t->dir) : 0;
	if (errno != EEXIST && errno != ENOTEMPTY)
		return err_errno(e, "%s/%s", t->dir, name);
	if (renameat2(t->work_fd, "new", t->fd, name, RENAME_EXCHANGE) < 0)
		return err_errno(e, "%s/%s", t->dir, name);
	int r = set_aside(t, t->work_fd, "new", name, e);
	if (r < 0) /* the old one goes back rather than with what was in the making */
		(void)renameat2(t->work_fd, "new", t->fd, name, RENAME_EXCHANGE);
	return r == 0 && fsync(t->fd) < 0 ? err_errno(e, "syncing %s", t->dir) : r;
}

int agent_trees_retire(struct agent_trees *t, const char *name, struct err *e)
{
	struct stat st;
	if (fstatat(t->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "%s '%s' is not installed in %s", t->what, name, t->dir);
	return set_aside(t, t->fd, name, name, e);
}

/* ---- who uses what was replaced ---- */

/* Does any process see a mount of DIR/NAME?  The kernel tells each by its present path. */
static bool is_mounted(const char *name)
{
	auto_free char *needle = xasprintf("/%s ", name);
	DIR *proc = opendir("/proc");
	bool found = !proc; /* who cannot look removes nothing */
	for (const struct dirent *x; !found && (x = readdir(proc));) {
		if (x->d_name[0] < '1' || x->d_name[0] > '9')
			continue;
		auto_free char *path = xasprintf("/proc/%s/mountinfo", x->d_name);
		auto_free char *text = NULL;
		size_t n = 0;
		int r = file_slurp(path, MOUNTS_MAX, &text, &n);
		/* Gone meanwhile, or ending: it sees nothing. */
		found = r == -E2BIG || (r == 0 && strstr(text, needle));
	}
	if (proc)
		closedir(proc);
	return found;
}

static void sweep_one(const struct agent_trees *t, const char *name, void *ctx)
{
	int *used = ctx;
	if (is_mounted(name))
		++*used;
	else
		remove_below(t, name);
}

static void count_one(const struct agent_trees *t, const char *name, void *ctx)
{
	(void)t;
	(void)name;
	++*(int *)ctx;
}

int agent_trees_sweep(const struct agent_trees *t)
{
	int old = 0, used = 0;
	(void)each_name(t, replaced, count_one, &old);
	if (!old)
		return 0;
	/* A jail that was in the making when it was replaced has its mount by then. */
	const struct timespec second = {1, 0};
	(void)nanosleep(&second, NULL);
	(void)each_name(t, replaced, sweep_one, &used);
	return used;
}
