#include "abctl/session_files.h"
#include "abctl/fail.h"
#include "abctl/query.h"
#include "abctl/save.h"
#include "abctl/show.h"
#include "base/fd.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 64 /* as a worker lists */ };

static const struct column columns[] = {
        {"NAME", "name", CELL_TEXT},
        {"TYPE", "type", CELL_TEXT},
        {"BYTES", "bytes", CELL_BYTES},
        {"MODE", "mode", CELL_TEXT},
        {"CHANGED", "changedAt", CELL_TIME},
        {.heading = NULL},
};

/* Below /v1/sessions/ID/files or /home; *ret is owned.  An exit code. */
static int url(const struct session_tree *t, const char *path, const char *query, char **ret)
{
	struct buf b = BUF_INIT(QUERY_PATH_MAX);
	while (*path == '/')
		path++;
	buf_puts(&b, "/v1/sessions/");
	url_encode(&b, t->id);
	buf_printf(&b, "/%s", t->part);
	if (*path && strcmp(path, ".") != 0) {
		buf_putc(&b, '/');
		url_encode_path(&b, path);
	}
	buf_puts(&b, query);
	if (b.failed) {
		buf_done(&b);
		return fail_usage("'%.64s...' is too long for a path", path);
	}
	*ret = buf_take(&b);
	return 0;
}

/* One page of a directory: *ret is owned. */
static int page(
        const struct session_tree *t, const char *path, const char *cursor, struct json **ret)
{
	auto_free char *at = NULL;
	auto_buf struct buf query = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&query, "?limit=1000");
	if (cursor) {
		buf_puts(&query, "&cursor=");
		url_encode(&query, cursor);
	}
	int r = url(t, path, query.p, &at);
	return r ? r : query_get(t->cli, at, ret);
}

/* Where the page after `j` goes on: NULL behind the last. */
static void next_page(char **cursor, const struct json *j)
{
	const char *next = json_str(j, "cursor", NULL);
	free(*cursor);
	*cursor = next ? xstrdup(next) : NULL;
}

/* ---- ls, mkdir, rm ---- */

int session_files_ls(const struct cli *cli, const char *session, const char *path)
{
	char *cursor = NULL;
	auto_free char *id = NULL;
	int r = query_session(cli, session, &id);
	const struct session_tree t = {cli, id, "files"};
	do {
		auto_json struct json *j = NULL;
		if (r == 0)
			r = page(&t, path, cursor, &j);
		if (r == 0 && !json_get(j, "entries"))
			r = fail_usage("%s is a file", path);
		if (r == 0)
			r = show_table(cli, j, "entries", columns);
		next_page(&cursor, r ? NULL : j);
	} while (cursor);
	return r;
}

static bool is_top(const char *path)
{
	path += strspn(path, "/");
	return !path[0] || (path[0] == '.' && !path[1 + strspn(path + 1, "/")]);
}

static int change(const struct cli *cli, const char *session, const char *path, const char *query,
        const char *method, const char *done)
{
	auto_free char *id = NULL, *at = NULL;
	if (is_top(path))
		return fail_usage("'%s' is the workspace itself: name what is in it", path);
	int r = query_session(cli, session, &id);
	const struct session_tree t = {cli, id, "files"};
	if (r == 0)
		r = url(&t, path, query, &at);
	const struct client_request req = {.method = method, .path = at};
	return r ? r : query_say(cli, &req, "%s %s", done, path);
}

int session_files_mkdir(const struct cli *cli, const char *session, const char *path)
{
	return change(cli, session, path, "?directory=1", "PUT", "made");
}

int session_files_rm(const struct cli *cli, const char *session, const char *path, bool recursive)
{
	return change(cli, session, path, recursive ? "?recursive=1" : "", "DELETE", "removed");
}

/* ---- out of a session ---- */

char *session_files_join(const char *dir, const char *name)
{
	size_t n = strlen(dir);
	return xasprintf("%s%s%s", dir, n && dir[n - 1] != '/' ? "/" : "", name);
}

static int fetch_tree(const struct session_tree *t, const char *path, const char *to, int depth);

/* A directory's answer is its entries, a file's never has that type. */
bool session_files_is_listing(const struct client *c)
{
	const char *type = client_content_type(c);
	return type && strncmp(type, "application/json", 16) == 0;
}

int session_files_get(const struct session_tree *t, const char *path, struct client **ret)
{
	auto_free char *at = NULL;
	int r = url(t, path, "", &at);
	if (r)
		return r;
	const struct client_request req = {.method = "GET", .path = at, .accept = "*/*"};
	return query_open(t->cli, &req, ret);
}

static int fetch(const struct session_tree *t, const char *path, const char *to, int depth)
{
	auto_client struct client *c = NULL;
	int r = session_files_get(t, path, &c);
	if (r)
		return r;
	bool out = strcmp(to, "-") == 0;
	if (session_files_is_listing(c))
		return out ? fail_usage("'%s' is a directory: name one to copy it into", path)
		           : fetch_tree(t, path, to, depth);
	if (out)
		return save_to(c, STDOUT_FILENO, "stdout");
	return save_file(c, to, client_mode(c) > 0 && client_mode(c) & 0111 ? 0777 : 0666);
}

/* What cannot be had of one is said, and does not keep the others from coming. */
static int with_each(const char *path, const struct json *entries, int depth, session_file_fn *each,
        void *ctx, bool *ret_left)
{
	int r = 0;
	for (const struct json *x = json_first(entries); x && r == 0; x = json_next(x)) {
		const char *name = json_str(x, "name", ""), *type = json_str(x, "type", "");
		/* The daemon does not say so; whoever else may answer could. */
		if (!name[0] || strchr(name, '/') || strcmp(name, ".") == 0 ||
		        strcmp(name, "..") == 0)
			return fail_system("'%s' is no name of a file", name);
		if (strcmp(type, "file") == 0 || strcmp(type, "directory") == 0)
			r = each(ctx, name, type[0] == 'd', depth);
		else
			fail_note("%s/%s is left out: it is no file and no directory", path, name);
		*ret_left |= r == EXIT_USAGE || r == EXIT_FAILED;
		r = r == EXIT_USAGE || r == EXIT_FAILED ? 0 : r;
	}
	return r;
}

int session_files_each(
        const struct session_tree *t, const char *path, int depth, session_file_fn *each, void *ctx)
{
	char *cursor = NULL;
	bool left = false, cut = false;
	int64_t unnamed = 0;
	int r = depth < DEPTH_MAX ? 0 : fail_usage("%s: directories are too deep", path);
	do {
		auto_json struct json *j = NULL;
		if (r == 0)
			r = page(t, path, cursor, &j);
		if (r == 0) {
			unnamed = json_int(j, "unnamed", 0);
			cut = json_bool(j, "truncated", false);
			r = with_each(path, json_get(j, "entries"), depth, each, ctx, &left);
		}
		next_page(&cursor, r ? NULL : j);
	} while (cursor);
	if (r == 0 && unnamed)
		fail_note("%s: names of %" PRId64 " are no text: they are left out", path, unnamed);
	if (r == 0 && cut)
		fail_note("%s: it has more entries than can be listed: they are left out", path);
	return r ? r : left || unnamed || cut ? EXIT_FAILED : 0;
}

struct fetching {
	const struct session_tree *tree;
	const char *path, *to;
};

static int fetch_entry(void *ctx, const char *name, bool directory, int depth)
{
	const struct fetching *f = ctx;
	(void)directory; /* it may be another by now, and its answer says so */
	auto_free char *from = session_files_join(f->path, name);
	auto_free char *at = session_files_join(f->to, name);
	return fetch(f->tree, from, at, depth + 1);
}

static int fetch_tree(const struct session_tree *t, const char *path, const char *to, int depth)
{
	struct fetching f = {t, path, to};
	if (mkdir(to, 0777) < 0 && errno != EEXIST)
		return fail_usage("%s: %s", to, strerror(errno));
	return session_files_each(t, path, depth, fetch_entry, &f);
}

/* The last part of a path, which may end with slashes; owned. */
static char *last_part(const char *path)
{
	size_t n = strlen(path);
	while (n && path[n - 1] == '/')
		n--;
	size_t from = n;
	while (from && path[from - 1] != '/')
		from--;
	return xstrndup(path + from, n - from);
}

static bool is_directory(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int copy_out(const struct cli *cli, const char *session, const char *path, const char *to)
{
	auto_free char *id = NULL;
	int r = query_session(cli, session, &id);
	const struct session_tree t = {cli, id, "files"};
	auto_free char *name = last_part(path);
	auto_free char *into =
	        is_directory(to) && name[0] ? session_files_join(to, name) : xstrdup(to);
	return r ? r : fetch(&t, path, into, 0);
}

/* ---- into a session ---- */

static int put_at(const struct cli *cli, const char *at, int fd, uint64_t n)
{
	auto_json struct json *answer = NULL;
	const struct client_request req = {.method = "PUT", .path = at, .from = fd, .from_len = n};
	return query_send(cli, &req, &answer);
}

int session_files_put(
        const struct session_tree *t, const char *path, bool executable, int fd, uint64_t n)
{
	auto_free char *at = NULL;
	int r = url(t, path, executable ? "?mode=0755" : "", &at);
	return r ? r : put_at(t->cli, at, fd, n);
}

static int put_file(const struct session_tree *t, const char *from, const char *path)
{
	struct stat st;
	auto_close int fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_usage("%s: %s", from, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fail_usage("%s is no file", from);
	return session_files_put(t, path, st.st_mode & 0111, fd, (uint64_t)st.st_size);
}

/* How much comes through a pipe is known when it has come. */
static int put_stdin(const struct session_tree *t, const char *path)
{
	char bytes[64 << 10];
	ssize_t n;
	uint64_t all = 0;
	FILE *kept = tmpfile();
	int r = kept ? 0 : fail_system("a file for what comes on stdin: %s", strerror(errno));
	while (r == 0 && (n = read(STDIN_FILENO, bytes, sizeof(bytes))) != 0) {
		int w = n < 0 ? -errno : fd_write_all(fileno(kept), bytes, (size_t)n);
		if (w < 0 && w != -EINTR)
			r = fail_system("keeping what comes on stdin: %s", strerror(-w));
		all += n > 0 ? (uint64_t)n : 0;
	}
	if (r == 0 && lseek(fileno(kept), 0, SEEK_SET) < 0)
		r = fail_system("what came on stdin: %s", strerror(errno));
	if (r == 0)
		r = session_files_put(t, path, false, fileno(kept), all);
	if (kept)
		(void)fclose(kept); /* nothing of it is unwritten */
	return r;
}

static int put_tree(const struct session_tree *t, const char *from, const char *path, int depth);

static int put_entry(const struct session_tree *t, const char *from, const char *path,
        const char *name, int depth)
{
	struct stat st;
	auto_free char *at = session_files_join(from, name), *to = session_files_join(path, name);
	if (lstat(at, &st) < 0)
		return fail_usage("%s: %s", at, strerror(errno));
	if (S_ISREG(st.st_mode))
		return put_file(t, at, to);
	if (S_ISDIR(st.st_mode))
		return put_tree(t, at, to, depth + 1);
	fail_note("%s is left out: it is no file and no directory", at);
	return 0;
}

static int put_tree(const struct session_tree *t, const char *from, const char *path, int depth)
{
	auto_free char *at = NULL;
	int r = depth < DEPTH_MAX ? 0 : fail_usage("%s: directories are too deep", from);
	if (r == 0 && path[0])
		r = url(t, path, "?directory=1", &at);
	if (r == 0 && path[0])
		r = put_at(t->cli, at, -1, 0);
	if (r != 0)
		return r;
	DIR *d = opendir(from);
	if (!d)
		return fail_usage("%s: %s", from, strerror(errno));
	for (const struct dirent *x; r == 0 && (x = readdir(d));)
		if (strcmp(x->d_name, ".") != 0 && strcmp(x->d_name, "..") != 0)
			r = put_entry(t, from, path, x->d_name, depth);
	(void)closedir(d); /* only read */
	return r;
}

static int copy_in(const struct cli *cli, const char *from, const char *session, const char *path)
{
	auto_free char *id = NULL;
	size_t n = strlen(path);
	bool out = strcmp(from, "-") == 0, tree = !out && is_directory(from);
	int r = query_session(cli, session, &id);
	const struct session_tree t = {cli, id, "files"};
	if (r)
		return r;
	if (out)
		return put_stdin(&t, path);
	auto_free char *name = last_part(from);
	bool into = !tree && (n == 0 || path[n - 1] == '/');
	auto_free char *to = into ? session_files_join(path, name) : xstrdup(path);
	return tree ? put_tree(&t, from, to, 0) : put_file(&t, from, to);
}

/* ---- cp ---- */

/* "SESSION:PATH", of which *ret_session is owned; NULL: a path here.  A goal that has a colon is
 * named by its session's id. */
static const char *remote(const char *text, char **ret_session)
{
	const char *colon = strchr(text, ':');
	if (!colon || text[0] == '.' || text[0] == '/' || colon == text)
		return NULL;
	*ret_session = xstrndup(text, (size_t)(colon - text));
	return colon + 1;
}

int session_files_cp(const struct cli *cli, const char *from, const char *to)
{
	auto_free char *in = NULL, *out = NULL;
	const char *source = remote(from, &out), *target = remote(to, &in);
	if (!source == !target)
		return fail_usage("one of the two is SESSION:PATH, the other a path here (one with "
		                  "a colon begins with ./)");
	return source ? copy_out(cli, out, source, to) : copy_in(cli, from, in, target);
}
