#include "abctl/agent_unpack.h"
#include "abctl/untar.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_SIZE = 64 << 10, PATH_SIZE = 2 * UNTAR_NAME_MAX + 2 };

struct unpacking {
	const struct agent_take *takes;
	size_t ntakes;
	bool used[AGENT_TAKES]; /* the package had something of it */
	int from;               /* borrowed: the archive */
	int file;               /* the one that is being written, -1: not taken */
	uint64_t bytes, files;  /* at most */
};

/* ---- the archive's files ---- */

/* Where `name` goes by that row: path (size PATH_SIZE), or false. */
static bool taken_as(const struct agent_take *t, const char *name, char *path)
{
	size_t n = strlen(t->from);
	int len;
	if (n == 0)
		return str_copy(path, PATH_SIZE, name);
	if (strcmp(t->from, ".") == 0)
		len = snprintf(path, PATH_SIZE, "%s/%s", t->to, name);
	else if (strncmp(name, t->from, n) == 0 && (name[n] == '\0' || name[n] == '/'))
		len = snprintf(path, PATH_SIZE, "%s%s", t->to, name + n);
	else
		return false;
	return len > 0 && len < PATH_SIZE;
}

static int make_parents(char *path, struct err *e)
{
	for (char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		int r = mkdir(path, 0755);
		if (r < 0 && errno != EEXIST)
			return err_errno(e, "making %s", path);
		*p = '/';
	}
	return 0;
}

/* Everything in a package is below one directory, whatever its name; who takes all as it stands
 * looks at that himself. */
static int on_file(void *ctx, const char *name, bool executable, struct err *e)
{
	struct unpacking *u = ctx;
	char path[PATH_SIZE];
	const char *slash = strchr(name, '/');
	for (size_t i = 0; i < u->ntakes; i++) {
		bool whole = !*u->takes[i].from;
		if ((!whole && !slash) || !taken_as(&u->takes[i], whole ? name : slash + 1, path))
			continue;
		u->used[i] = true;
		int r = make_parents(path, e);
		if (r < 0)
			return r;
		bool program =
		        executable || (strncmp(path, "bin/", 4) == 0 && !strchr(path + 4, '/'));
		u->file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		        program ? 0755 : 0644);
		return u->file < 0 ? err_errno(e, "making %s", path) : 0;
	}
	return 0;
}

static int on_data(void *ctx, const void *p, size_t n, struct err *e)
{
	struct unpacking *u = ctx;
	int r = u->file < 0 ? 0 : fd_write_all(u->file, p, n);
	return r < 0 ? err_set(e, r, "writing its files: %s", strerror(-r)) : 0;
}

static int on_end(void *ctx, struct err *e)
{
	struct unpacking *u = ctx;
	int r = u->file < 0 ? 0 : close(u->file);
	u->file = -1;
	return r < 0 ? err_errno(e, "writing its files") : 0;
}

static const struct untar_calls calls = {.file = on_file, .data = on_data, .end = on_end};

static int unpack(void *ctx, struct err *e)
{
	struct unpacking *u = ctx;
	struct untar *t = untar_new(&calls, u);
	untar_allow(t, u->bytes, u->files);
	char p[READ_SIZE];
	for (;;) {
		ssize_t n = read(u->from, p, sizeof(p));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, "reading the archive");
		int r = n ? untar_feed(t, p, (size_t)n, e) : untar_end(t, e);
		if (r < 0)
			return r;
		if (n == 0)
			break;
	}
	for (size_t i = 0; i < u->ntakes; i++)
		if (!u->used[i])
			return err_set(e, -ENOENT,
			        "the package has no %.200s, which agent.yaml takes of it",
			        u->takes[i].from);
	return 0;
}

int agent_unpack_start(struct confined *c, int tree, int from, const struct agent_take *takes,
        size_t ntakes, const struct agent_unpack_most *most, struct err *e)
{
	struct unpacking state = {.takes = takes,
	        .ntakes = ntakes,
	        .from = from,
	        .file = -1,
	        .bytes = most ? most->bytes : UNTAR_BYTES_MAX,
	        .files = most ? most->files : UNTAR_FILES_MAX};
	const struct confined_spec s = {.tree = tree,
	        .uid = ID_UNPACK,
	        .gid = ID_UNPACK,
	        .file_max = state.bytes,
	        .work = unpack,
	        .ctx = &state};
	return confined_start(c, &s, e);
}
