/*
 * Theory of operation.  What has come of a file is in ".agentbox-DIGEST.part" beside it, so that
 * another one is never gone on with: the digest of the whole is checked at the end in any case.
 * All of a run go into "DIR.RUN.part", which becomes DIR by one rename: a directory that has files
 * already gets none of an agent's among them (.git/hooks/..., .bashrc).
 */
#include "abctl/artifact_get.h"

#include "abctl/fail.h"
#include "base/neutral.h"
#include "abctl/query.h"
#include "abctl/save.h"
#include "abctl/show.h"
#include "abctl/tar.h"
#include "base/digest.h"
#include "base/fd.h"
#include "base/mem.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	SHOWN_MAX = 1 << 20, /* more is not read on a terminal */
	READ_SIZE = 64 << 10,
	PART_NAME = 64,
	PART_DIGITS = 32, /* of the digest, in the name of a part */
};

/* One of the list. */
struct want {
	const struct cli *cli;
	char *url; /* owned */
	const char *path, *sha256;
	uint64_t bytes;
	int fd;                /* of the part */
	const char *name;      /* of the file, for errors */
	struct digest *digest; /* owned: of what the part has */
	uint64_t at;           /* so many bytes of it */
};

/* ---- the list ---- */

char *artifact_url(const char *run, const char *path)
{
	struct buf b = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&b, "/v1/runs/");
	url_encode(&b, run);
	buf_puts(&b, "/artifacts");
	if (path) {
		buf_putc(&b, '/');
		url_encode_path(&b, path);
	}
	if (!b.failed)
		return buf_take(&b);
	buf_done(&b);
	(void)fail_usage("'%.64s...' is too long for a path", path ? path : run);
	return NULL;
}

int artifact_list(const struct cli *cli, const char *run, struct json **ret)
{
	auto_free char *url = artifact_url(run, NULL);
	return url ? query_get(cli, url, ret) : EXIT_USAGE;
}

static void want_done(struct want *w)
{
	free(w->url);
	digest_free(w->digest);
}

/* Each part is a name, and none leads up. */
static bool is_below(const char *path)
{
	for (const char *p = path;; p++) {
		size_t n = strcspn(p, "/");
		if (n == 0 || (n <= 2 && strspn(p, ".") == n))
			return false;
		p += n;
		if (!*p)
			return true;
	}
}

static int want_read(
        struct want *w, const struct cli *cli, const char *run, const struct json *artifact)
{
	int64_t bytes = json_int(artifact, "bytes", -1);
	*w = (struct want){.cli = cli,
	        .path = json_str(artifact, "path", ""),
	        .sha256 = json_str(artifact, "sha256", ""),
	        .bytes = (uint64_t)bytes,
	        .fd = -1};
	/* It becomes a name, and a header. */
	if (bytes < 0 || strlen(w->sha256) != DIGEST_TEXT - 1 ||
	        strspn(w->sha256, "0123456789abcdef") != DIGEST_TEXT - 1)
		return fail_system("the daemon's list of artifacts has one without size or digest");
	if (!is_below(w->path))
		return fail_system("'%s' is no name of an artifact", w->path);
	if (!json_bool(json_get(artifact, "upload"), "local", true))
		return fail_system("'%s' is in the S3 bucket alone: see `abctl artifacts %s "
		                   "--links`",
		        w->path, run);
	w->url = artifact_url(run, w->path);
	return w->url ? 0 : EXIT_USAGE;
}

/* ---- bytes ---- */

static int ask(const struct want *w, struct client **ret)
{
	const struct client_request req = {.method = "GET",
	        .path = w->url,
	        .accept = "*/*",
	        .range_from = w->at,
	        .if_range = w->sha256};
	return query_open(w->cli, &req, ret);
}

static void forget(struct want *w)
{
	digest_free(w->digest);
	w->digest = digest_new();
	w->at = 0;
}

/* From the beginning. */
static int start_over(struct want *w)
{
	forget(w);
	if (ftruncate(w->fd, 0) < 0 || lseek(w->fd, 0, SEEK_SET) < 0)
		return fail_system("%s: %s", w->name, strerror(errno));
	return 0;
}

/* Is it all of it, and right?  Takes the digest. */
static bool is_right(struct want *w)
{
	char got[DIGEST_TEXT];
	digest_end(take(w->digest), got);
	return w->at == w->bytes && digest_same(got, w->sha256);
}

static int wrong(const struct want *w)
{
	return fail_system("%s: what came is not what the run has kept as %s (SHA-256 %s)", w->name,
	        w->path, w->sha256);
}

/* What `fd` has, at most w->bytes of it, into the digest. */
static int read_there(struct want *w, int fd)
{
	char bytes[READ_SIZE];
	ssize_t n;
	while ((n = read(fd, bytes, sizeof(bytes))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_system("%s: %s", w->name, strerror(errno));
		digest_add(w->digest, bytes, (size_t)n);
		w->at += (uint64_t)n;
		if (w->at > w->bytes)
			break;
	}
	return 0;
}

/* What is missing of the part. */
static int fetch_rest(struct want *w)
{
	struct err e = {0};
	auto_client struct client *c = NULL;
	if (w->at == w->bytes)
		return 0;
	int r = ask(w, &c);
	if (r == 0 && w->at && client_status(c, &e) != 206)
		r = start_over(w);
	if (r)
		return r;
	int rc = save_bytes(c, w->fd, w->name, w->bytes - w->at, w->digest, &e);
	off_t end = lseek(w->fd, 0, SEEK_CUR);
	w->at = end < 0 ? 0 : (uint64_t)end;
	return rc == 0 ? 0
	               : fail_system("%s (%" PRIu64 " of %" PRIu64
	                             " bytes are there: the same command goes on from there)",
	                         e.text, w->at, w->bytes);
}

/* The part becomes all of it, and right. */
static int complete(struct want *w)
{
	forget(w);
	int r = read_there(w, w->fd);
	if (r == 0 && w->at > w->bytes)
		r = start_over(w);
	bool resumed = w->at > 0;
	if (r == 0)
		r = fetch_rest(w);
	if (r || is_right(w))
		return r;
	if (!resumed)
		return wrong(w);
	/* What was there is of something else: once more, without it. */
	r = start_over(w);
	if (r == 0)
		r = fetch_rest(w);
	return r || is_right(w) ? r : wrong(w);
}

/* ---- files ---- */

static int open_part(int dir, const char *part, const char *name, struct stat *st)
{
	struct stat now;
	auto_close int fd =
	        openat(dir, part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
	if (fd < 0 || fstat(fd, st) < 0)
		return -fail_usage("%s (%s): %s", name, part, strerror(errno));
	if (!S_ISREG(st->st_mode) || st->st_nlink != 1)
		return -fail_usage("%s (%s): is there, and no file of abctl's", name, part);
	/* One that was renamed by another, between open and lock, is that one's result. */
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstatat(dir, part, &now, AT_SYMLINK_NOFOLLOW) < 0 ||
	        now.st_ino != st->st_ino)
		return -fail_usage("%s: another abctl is fetching it", name);
	return take_fd(fd);
}

/* There already, and right? */
static bool is_there(struct want *w, int dir, const char *file)
{
	struct stat st;
	auto_close int fd = openat(dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	        (uint64_t)st.st_size != w->bytes)
		return false;
	forget(w);
	return read_there(w, fd) == 0 && is_right(w);
}

static int get_file(struct want *w, int dir, const char *file, const char *name)
{
	char part[PART_NAME];
	struct stat st;
	w->name = name;
	if (is_there(w, dir, file))
		return 0;
	(void)snprintf(part, sizeof(part), ".agentbox-%.*s.part", (int)PART_DIGITS, w->sha256);
	auto_close int fd = open_part(dir, part, name, &st);
	if (fd < 0)
		return -fd;
	w->fd = fd;
	int r = complete(w);
	if (r == 0 && renameat(dir, part, dir, file) < 0)
		r = fail_system("%s: %s", name, strerror(errno));
	/* Nothing to go on with. */
	if (r && (w->at == 0 || w->at == w->bytes))
		(void)unlinkat(dir, part, 0);
	return r;
}

/* ---- one ---- */

/* Text, made harmless; other bytes are not for a terminal. */
static int show(struct want *w)
{
	struct err e = {0};
	const char *bytes = NULL;
	size_t n = 0;
	auto_client struct client *c = NULL;
	if (w->bytes > SHOWN_MAX)
		return fail_usage("this artifact is too long for a terminal: give -o FILE");
	int r = ask(w, &c);
	if (r)
		return r;
	if (client_body(c, &bytes, &n, &e) < 0)
		return query_failed(&e);
	forget(w);
	w->name = "stdout";
	w->at = n;
	digest_add(w->digest, bytes, n);
	if (!is_right(w))
		return wrong(w);
	if (!neutral_is_text(bytes, n))
		return fail_usage("this artifact is no text for a terminal: give -o FILE");
	auto_buf struct buf b = BUF_INIT(8 * (size_t)SHOWN_MAX);
	neutral_text(&b, bytes, n);
	return show_text(&b);
}

/* Whoever reads it has read it before the end: then the exit code says that it was wrong. */
static int pass_on(struct want *w, int fd, const char *name)
{
	struct err e = {0};
	auto_client struct client *c = NULL;
	w->name = name;
	int r = ask(w, &c);
	if (r)
		return r;
	forget(w);
	if (save_bytes(c, fd, name, w->bytes, w->digest, &e) < 0)
		return fail_system("%s", e.text);
	w->at = w->bytes; /* a shorter answer has another digest */
	return is_right(w) ? EXIT_DONE : wrong(w);
}

static int into_file(struct want *w, const char *out)
{
	const char *slash = strrchr(out, '/');
	auto_free char *above = slash == out ? xstrdup("/")
	                        : slash      ? xstrndup(out, (size_t)(slash - out))
	                                     : xstrdup(".");
	auto_close int dir = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return fail_usage("%s: %s", above, strerror(errno));
	return get_file(w, dir, slash ? slash + 1 : out, out);
}

int artifact_get(const struct cli *cli, const char *run, const char *path, const char *out)
{
	auto_json struct json *list = NULL;
	int r = artifact_list(cli, run, &list);
	if (r)
		return r;
	const struct json *x = json_first(json_get(list, "artifacts"));
	while (x && strcmp(json_str(x, "path", ""), path) != 0)
		x = json_next(x);
	if (!x)
		return fail_usage(
		        "run %s has no artifact '%s' (see `abctl artifacts %s`)", run, path, run);
	struct want w;
	r = want_read(&w, cli, run, x);
	if (r == 0 && out && strcmp(out, "-") != 0)
		r = into_file(&w, out);
	else if (r == 0)
		r = !out && isatty(STDOUT_FILENO) ? show(&w) : pass_on(&w, STDOUT_FILENO, "stdout");
	want_done(&w);
	return r;
}

/* ---- all ---- */

/* The directory of a path below `top`, made where it is missing; *ret_file: its last part.  fd
 * (owned), or minus an exit code.  No link is followed. */
static int descend(int top, const char *path, const char **ret_file)
{
	auto_close int at = fd_dup(top);
	if (at < 0)
		return -fail_system("%s: %s", path, strerror(errno));
	for (const char *p = path;;) {
		size_t n = strcspn(p, "/");
		auto_free char *part = xstrndup(p, n);
		if (!p[n]) {
			*ret_file = p;
			return take_fd(at);
		}
		if (mkdirat(at, part, 0777) < 0 && errno != EEXIST)
			return -fail_system("%s: %s", path, strerror(errno));
		int below = openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below < 0)
			return -fail_system("%s: %s", path, strerror(errno));
		fd_close(at);
		at = below;
		p += n + 1;
	}
}

static int get_each(const struct cli *cli, const char *run, const struct json *list, int top,
        unsigned *ret_files, uint64_t *ret_bytes)
{
	const struct json *x = json_first(json_get(list, "artifacts"));
	int r = 0;
	for (; x && r == 0; x = json_next(x)) {
		struct want w;
		const char *file = "";
		r = want_read(&w, cli, run, x);
		auto_close int dir = r ? -1 : descend(top, w.path, &file);
		if (r == 0)
			r = dir < 0 ? -dir : get_file(&w, dir, file, w.path);
		*ret_files += r == 0;
		*ret_bytes += w.bytes;
		want_done(&w);
	}
	return r;
}

static int into_part(const struct cli *cli, const char *run, const char *part, const char *dir)
{
	auto_json struct json *list = NULL;
	unsigned files = 0;
	uint64_t bytes = 0;
	int r = artifact_list(cli, run, &list);
	if (r)
		return r;
	if (mkdir(part, 0777) < 0 && errno != EEXIST)
		return fail_usage("%s: %s", part, strerror(errno));
	auto_close int top = open(part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (top < 0)
		return fail_usage("%s: %s", part, strerror(errno));
	if (flock(top, LOCK_EX | LOCK_NB) < 0)
		return fail_usage("%s: another abctl is fetching into it", part);
	r = get_each(cli, run, list, top, &files, &bytes);
	if (r == 0 && rename(part, dir) < 0)
		r = fail_system("%s: %s (all is in %s)", dir, strerror(errno), part);
	if (r)
		return r;
	if (cli->json)
		printf("{\"files\":%u,\"bytes\":%" PRIu64 "}\n", files, bytes);
	else
		printf("%u file%s, %" PRIu64 " bytes\n", files, files == 1 ? "" : "s", bytes);
	return EXIT_DONE;
}

int artifact_get_all(const struct cli *cli, const char *run, const char *dir)
{
	auto_free char *to = xstrdup(dir);
	for (size_t n = strlen(to); n > 1 && to[n - 1] == '/'; n--)
		to[n - 1] = '\0';
	if (strchr(run, '/'))
		return fail_usage("'%s' is no run", run);
	/* An empty directory is as good as none, and is what this removes. */
	if (rmdir(to) < 0 && errno != ENOENT)
		return fail_usage("%s: name a directory that is not there yet, or an empty one: "
		                  "what an agent has made is not put among other files",
		        dir);
	auto_free char *part = xasprintf("%s.%s.part", to, run);
	return into_part(cli, run, part, to);
}

struct archiving {
	const struct cli *cli;
	const char *run;
};

static int put(struct want *w, int fd, const char *name)
{
	int rc = tar_file(fd, w->path, false, w->bytes);
	int r = rc < 0 ? 0 : pass_on(w, fd, name);
	if (r == 0 && rc == 0)
		rc = tar_pad(fd, w->bytes);
	return rc < 0 ? fail_system("%s: %s: %s", name, w->path, strerror(-rc)) : r;
}

static int archive(void *ctx, int fd, const char *name)
{
	const struct archiving *a = ctx;
	auto_json struct json *list = NULL;
	int r = artifact_list(a->cli, a->run, &list);
	const struct json *x = r ? NULL : json_first(json_get(list, "artifacts"));
	for (; x && r == 0; x = json_next(x)) {
		struct want w;
		r = want_read(&w, a->cli, a->run, x);
		if (r == 0)
			r = put(&w, fd, name);
		want_done(&w);
	}
	int rc = r ? 0 : tar_end(fd);
	return rc < 0 ? fail_system("%s: %s", name, strerror(-rc)) : r;
}

int artifact_get_tar(const struct cli *cli, const char *run, const char *out)
{
	struct archiving a = {cli, run};
	return save_archive(out, archive, &a);
}
