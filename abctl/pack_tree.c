#include "abctl/pack_tree.h"
#include "base/fd.h"
#include "base/mem.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_SIZE = 64 << 10 };

static int no_dots(const struct dirent *d)
{
	return strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
}

static int by_letters(const struct dirent **a, const struct dirent **b)
{
	return strcasecmp((*a)->d_name, (*b)->d_name);
}

struct names {
	struct dirent **v;
	int n;
};

static int list(int dir, const char *path, struct names *ret, struct err *e)
{
	ret->n = scandirat(dir, ".", &ret->v, no_dots, by_letters);
	return ret->n < 0 ? err_errno(e, "%s", *path ? path : "the pack") : 0;
}

static void list_done(struct names *l)
{
	for (int i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
}

static char *join(const char *path, const char *name)
{
	return xasprintf("%s%s%s", path, *path ? "/" : "", name);
}

/* ---- copying ---- */

struct copying {
	uint64_t bytes, files;
	struct err *e;
};

static int copy_bytes(struct copying *c, int from, int to, const char *path)
{
	char p[READ_SIZE];
	for (ssize_t n; (n = fd_read_full(from, p, sizeof(p))) != 0;) {
		c->bytes += n > 0 ? (uint64_t)n : 0;
		if (n > 0 && c->bytes > PACK_BYTES_MAX)
			return err_set(c->e, -EFBIG, "the pack has more than %llu bytes",
			        (unsigned long long)PACK_BYTES_MAX);
		int r = n < 0 ? (int)n : fd_write_all(to, p, (size_t)n);
		if (r < 0)
			return err_set(c->e, r, "%s: %s", path, strerror(-r));
	}
	return 0;
}

static int copy_dir(struct copying *c, int from, int to, const char *path, int depth);

static int copy_one(
        struct copying *c, int from, int to, const char *name, const char *path, int depth)
{
	auto_close int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	if (in < 0 && (errno == ELOOP || errno == ENXIO))
		return err_set(c->e, -EBADMSG, "%s is a link or none that is copied", path);
	if (in < 0 || fstat(in, &st) < 0)
		return err_errno(c->e, "%s", path);
	if (++c->files > PACK_FILES_MAX)
		return err_set(c->e, -EFBIG, "the pack has more than %d files", PACK_FILES_MAX);
	if (S_ISDIR(st.st_mode)) {
		if (mkdirat(to, name, 0755) < 0)
			return err_errno(c->e, "making %s", path);
		auto_close int below = openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return below < 0 ? err_errno(c->e, "%s", path)
		                 : copy_dir(c, in, below, path, depth + 1);
	}
	if (!S_ISREG(st.st_mode))
		return err_set(c->e, -EBADMSG, "%s is neither file nor directory", path);
	mode_t mode = st.st_mode & S_IXUSR ? 0755 : 0644;
	auto_close int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	return out < 0 ? err_errno(c->e, "making %s", path) : copy_bytes(c, in, out, path);
}

static int copy_dir(struct copying *c, int from, int to, const char *path, int depth)
{
	if (depth > PACK_DEPTH_MAX)
		return err_set(c->e, -ELOOP, "%s is too deep", path);
	struct names l;
	int r = list(from, path, &l, c->e);
	if (r < 0)
		return r;
	for (int i = 0; i < l.n && r == 0; i++) {
		auto_free char *at = join(path, l.v[i]->d_name);
		if (strcmp(at, ".git") != 0)
			r = copy_one(c, from, to, l.v[i]->d_name, at, depth);
	}
	list_done(&l);
	return r;
}

int pack_tree_copy(const char *from, int tree, struct err *e)
{
	struct copying c = {.e = e};
	auto_close int dir = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? err_errno(e, "%s", from) : copy_dir(&c, dir, tree, "", 0);
}

/* ---- one directory above all ---- */

int pack_tree_unwrap(struct agent_trees *t, int tree, struct err *e)
{
	struct names l;
	int r = list(tree, "", &l, e);
	if (r < 0) {
		fd_close(tree);
		return r;
	}
	struct stat st;
	bool one = l.n == 1 && fstatat(tree, l.v[0]->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	           S_ISDIR(st.st_mode) && strcmp(l.v[0]->d_name, "harnesses") != 0;
	if (one && (renameat(tree, l.v[0]->d_name, t->work_fd, "top") < 0 ||
	                   unlinkat(t->work_fd, "new", AT_REMOVEDIR) < 0 ||
	                   renameat(t->work_fd, "top", t->work_fd, "new") < 0))
		r = err_errno(e, "unwrapping the pack");
	list_done(&l);
	if (!one)
		return tree;
	fd_close(tree);
	if (r < 0)
		return r;
	int fd = openat(t->work_fd, "new", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_errno(e, "unwrapping the pack") : fd;
}

/* ---- looking ---- */

static int check_dir(int dir, const char *path, int depth, struct err *e)
{
	if (depth > PACK_DEPTH_MAX)
		return err_set(e, -ELOOP, "%s is too deep", path);
	struct names l;
	int r = list(dir, path, &l, e);
	if (r < 0)
		return r;
	for (int i = 0; i < l.n && r == 0; i++) {
		const char *name = l.v[i]->d_name;
		auto_free char *at = join(path, name);
		if (i && strcasecmp(l.v[i - 1]->d_name, name) == 0)
			r = err_set(e, -EBADMSG,
			        "%s differs from another name by its letters' case", at);
		struct stat st;
		if (r < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		        !S_ISDIR(st.st_mode))
			continue;
		auto_close int below =
		        openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = below < 0 ? err_errno(e, "%s", at) : check_dir(below, at, depth + 1, e);
	}
	list_done(&l);
	return r;
}

int pack_tree_check(int tree, struct err *e)
{
	struct stat st;
	if (fstatat(tree, "INSTALLED", &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode))
		return err_set(e, -EBADMSG, "INSTALLED is where its record will be, and no file");
	return check_dir(tree, "", 0, e);
}
