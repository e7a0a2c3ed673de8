#include "abctl/session_tar.h"
#include "abctl/fail.h"
#include "abctl/query.h"
#include "abctl/save.h"
#include "abctl/session_files.h"
#include "abctl/tar.h"
#include "abctl/untar.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BYTES_MAX (UINT64_C(64) << 30)

enum { READ_SIZE = 64 << 10, FORGET_TRIES = 100, CONVERSATIONS_MAX = 32 << 10 };

static const char conversations[] = "conversations.json";

/* What below which name in an archive goes where. */
static const struct part {
	const char *name, *part; /* part: of struct session_tree */
} parts[] = {{"workspace/", "files"}, {"home/", "home"}};

/* ---- export ---- */

struct export
{
	struct session_tree tree;
	const char *below; /* of the archive: where the tree is */
	const char *path;  /* the directory that is gone through */
	int fd;
	const char *name; /* of fd, for errors */
};

static int wrote(const struct export *x, int rc)
{
	return rc < 0 ? fail_system("%s: %s", x->name, strerror(-rc)) : 0;
}

static int put_client(const struct export *x, const char *name, struct client *c)
{
	int64_t n = client_length(c);
	if (n < 0)
		return fail_system("the daemon does not say how long %s is", name);
	int r = wrote(
	        x, tar_file(x->fd, name, client_mode(c) > 0 && client_mode(c) & 0111, (uint64_t)n));
	if (r == 0) /* what is shorter ends in an error */
		r = save_to(c, x->fd, x->name);
	return r ? r : wrote(x, tar_pad(x->fd, (uint64_t)n));
}

/* Whoever names files so that no import takes them does not keep the others from being exported. */
static int check_name(const char *path, const char *at)
{
	struct err e;
	return untar_check_name(at, &e) == 0
	               ? 0
	               : fail_usage("'%.160s' is left out: its name is too long or too deep for an "
	                            "archive, or has control characters",
	                         path);
}

static int put_entry(void *ctx, const char *name, bool directory, int depth)
{
	const struct export *x = ctx;
	auto_free char *path = session_files_join(x->path, name);
	struct export below = *x;
	below.path = path;
	if (directory)
		return session_files_each(&x->tree, path, depth + 1, put_entry, &below);
	auto_free char *at = xasprintf("%s%s", x->below, path);
	auto_client struct client *c = NULL;
	int r = check_name(path, at);
	if (r == 0)
		r = session_files_get(&x->tree, path, &c);
	if (r)
		return r;
	if (session_files_is_listing(c))
		return fail_usage("%s has become a directory meanwhile: try again", path);
	return put_client(x, at, c);
}

/* What has no length when its head comes: kept first. */
static int put_kept(const struct export *x, const char *name, FILE *kept)
{
	char bytes[READ_SIZE];
	size_t n;
	long all = fflush(kept) < 0 ? -1 : ftell(kept);
	if (all < 0)
		return fail_system("keeping %s: %s", name, strerror(errno));
	rewind(kept);
	int r = wrote(x, tar_file(x->fd, name, false, (uint64_t)all));
	while (r == 0 && (n = fread(bytes, 1, sizeof(bytes), kept)) > 0)
		r = wrote(x, fd_write_all(x->fd, bytes, n));
	return r ? r : wrote(x, tar_pad(x->fd, (uint64_t)all));
}

static int keep_events(const struct export *x, FILE *kept)
{
	auto_free char *path = xasprintf("/v1/sessions/%s/events", x->tree.id);
	auto_client struct client *c = NULL;
	int r = query_lines(x->tree.cli, path, &c);
	return r ? r : save_to(c, fileno(kept), "events.jsonl");
}

static int keep_runs(const struct export *x, FILE *kept)
{
	auto_free char *cursor = NULL;
	int r = 0;
	do {
		auto_json struct json *page = NULL;
		auto_free char *path = xasprintf("/v1/runs?session=%s&limit=100%s%s", x->tree.id,
		        cursor ? "&cursor=" : "", cursor ? cursor : "");
		r = query_get(x->tree.cli, path, &page);
		const struct json *run = r ? NULL : json_first(json_get(page, "runs"));
		for (; run; run = json_next(run)) {
			auto_buf struct buf b = BUF_INIT(64 << 20);
			if (json_print(run, &b) == 0)
				fprintf(kept, "%s\n", b.p);
		}
		const char *next = r ? NULL : json_str(page, "cursor", NULL);
		free(cursor);
		cursor = next ? xstrdup(next) : NULL;
	} while (cursor);
	return r;
}

static int keep_json(const struct export *x, const char *below, FILE *kept)
{
	auto_free char *path = xasprintf("/v1/sessions/%s%s", x->tree.id, below);
	auto_json struct json *j = NULL;
	auto_buf struct buf b = BUF_INIT(1 << 20);
	int r = query_get(x->tree.cli, path, &j);
	if (r == 0 && json_print(j, &b) == 0)
		fprintf(kept, "%s\n", b.p);
	return r;
}

static int keep_session(const struct export *x, FILE *kept)
{
	return keep_json(x, "", kept);
}

static int keep_conversations(const struct export *x, FILE *kept)
{
	return keep_json(x, "/conversations", kept);
}

/* Conversations are of use where the home is, and are the last. */
static int put_records(const struct export *x, bool home)
{
	static const struct {
		const char *name;
		int (*keep)(const struct export *x, FILE *kept);
	} all[] = {{"session.json", keep_session}, {"runs.jsonl", keep_runs},
	        {"events.jsonl", keep_events}, {conversations, keep_conversations}};
	int r = 0;
	for (size_t i = 0; i < ARRAY_LEN(all) - !home && r == 0; i++) {
		FILE *kept = tmpfile();
		r = kept ? all[i].keep(x, kept)
		         : fail_system("%s: %s", all[i].name, strerror(errno));
		if (r == 0 && fseek(kept, 0, SEEK_END) < 0)
			r = fail_system("%s: %s", all[i].name, strerror(errno));
		if (r == 0)
			r = put_kept(x, all[i].name, kept);
		if (kept)
			(void)fclose(kept); /* it is gone with it */
	}
	return r;
}

struct exporting {
	const struct cli *cli;
	const char *session;
	bool home;
};

static int export_to(void *ctx, int fd, const char *name)
{
	const struct exporting *from = ctx;
	auto_free char *id = NULL;
	int r = query_session(from->cli, from->session, &id);
	struct export x = {.tree = {from->cli, id, NULL}, .path = "", .fd = fd, .name = name};
	bool left = false;
	if (r == 0)
		r = put_records(&x, from->home);
	for (size_t i = 0; i < ARRAY_LEN(parts) - !from->home && r == 0; i++) {
		x.tree.part = parts[i].part;
		x.below = parts[i].name;
		r = session_files_each(&x.tree, "", 0, put_entry, &x);
		left |= r == EXIT_FAILED;
		r = r == EXIT_FAILED ? 0 : r;
	}
	if (r && r != EXIT_FAILED)
		return r;
	r = left ? EXIT_FAILED : r;
	if (r)
		fail_note("%s lacks what is said above", name);
	int ended = wrote(&x, tar_end(fd));
	return ended ? ended : r;
}

int session_export(const struct cli *cli, const char *session, const char *out, bool home)
{
	struct exporting from = {cli, session, home};
	return save_archive(out, export_to, &from);
}

/* ---- import ---- */

struct import {
	const struct cli *cli;
	char *id;                      /* owned */
	bool home;                     /* wanted, too */
	char name[UNTAR_NAME_MAX + 1]; /* in its part; "": nothing is wanted of it */
	const char *part;              /* NULL: its agents' conversations */
	bool executable;
	FILE *kept; /* owned */
	uint64_t bytes;
	unsigned files, left; /* left: of the home, which is not wanted */
	bool ours;            /* it has what an export has */
	int code;             /* of what has failed, and is said already */
};

/* The name in its part, "": it is of none that is wanted. */
static const char *where(struct import *x, const char *name)
{
	x->part = NULL;
	if (x->home && strcmp(name, conversations) == 0)
		return name;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		size_t n = strlen(parts[i].name);
		if (strncmp(name, parts[i].name, n) != 0)
			continue;
		bool wanted = i == 0 || x->home;
		x->left += !wanted;
		x->part = parts[i].part;
		return wanted ? name + n : "";
	}
	return "";
}

static int on_file(void *ctx, const char *name, bool executable, struct err *e)
{
	struct import *x = ctx;
	const char *at = where(x, name);
	x->ours |= x->part || strcmp(name, "session.json") == 0;
	(void)str_copy(x->name, sizeof(x->name), at); /* untar has looked how long it is */
	if (!at[0])
		return 0;
	x->executable = executable;
	x->bytes = 0;
	x->kept = tmpfile();
	return x->kept ? 0 : err_errno(e, "keeping %s", name);
}

static int on_data(void *ctx, const void *p, size_t n, struct err *e)
{
	struct import *x = ctx;
	if (!x->name[0])
		return 0;
	x->bytes += n;
	if (!x->part && x->bytes > CONVERSATIONS_MAX)
		return err_set(e, -E2BIG, "%s is longer than %d bytes", x->name, CONVERSATIONS_MAX);
	int r = fd_write_all(fileno(x->kept), p, n);
	return r < 0 ? err_set(e, r, "keeping %s: %s", x->name, strerror(-r)) : 0;
}

/* Up to which run they went is of the other session, and is not said: the daemon looks at the
 * rest. */
static int take_conversations(const struct import *x, int fd)
{
	char text[CONVERSATIONS_MAX + 1];
	auto_buf struct buf body = BUF_INIT((size_t)2 * CONVERSATIONS_MAX),
	                    path = BUF_INIT(QUERY_PATH_MAX);
	ssize_t n = fd_pread_full(fd, text, (size_t)x->bytes, 0);
	struct err e;
	auto_json struct json *all = n < 0 ? NULL : json_parse(text, (size_t)n, &e);
	auto_json struct json *answer = NULL;
	if (n < 0)
		return fail_system("%s: %s", x->name, strerror((int)-n));
	if (!all)
		return fail_usage("%s: %s", x->name, e.text);
	struct jw w = JW_INIT(&body);
	jw_open(&w, NULL, '{');
	jw_open(&w, "conversations", '[');
	const struct json *one = json_first(json_get(all, "conversations"));
	for (; one; one = json_next(one)) {
		jw_open(&w, NULL, '{');
		jw_str(&w, "backend", json_str(one, "backend", ""));
		jw_str(&w, "id", json_str(one, "id", ""));
		jw_close(&w, '}');
	}
	jw_close(&w, ']');
	jw_close(&w, '}');
	buf_printf(&path, "/v1/sessions/%s/conversations", x->id);
	if (body.failed || path.failed)
		return fail_usage("%s has too many conversations", x->name);
	const struct client_request req = {
	        .method = "PUT", .path = path.p, .body = body.p, .body_len = body.len};
	return query_send(x->cli, &req, &answer);
}

static int on_end(void *ctx, struct err *e)
{
	struct import *x = ctx;
	if (!x->name[0])
		return 0;
	int fd = fileno(x->kept);
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_errno(e, "keeping %s", x->name);
	const struct session_tree t = {x->cli, x->id, x->part};
	x->code = x->part ? session_files_put(&t, x->name, x->executable, fd, x->bytes)
	                  : take_conversations(x, fd);
	(void)fclose(take(x->kept)); /* it is gone with it */
	x->files += x->part != NULL;
	return x->code ? err_set(e, -ECANCELED, "%s", x->name) : 0;
}

static int feed(struct import *x, int fd, const char *name)
{
	static const struct untar_calls calls = {.file = on_file, .data = on_data, .end = on_end};
	char bytes[READ_SIZE];
	struct err e = {0};
	ssize_t n = 0;
	struct untar *u = untar_new(&calls, x);
	int r = 0;
	untar_allow(u, BYTES_MAX, UNTAR_FILES_MAX);
	while (r == 0 && (n = read(fd, bytes, sizeof(bytes))) != 0)
		r = n > 0            ? untar_feed(u, bytes, (size_t)n, &e)
		    : errno == EINTR ? 0
		                     : err_errno(&e, "%s", name);
	if (r == 0)
		r = untar_end(u, &e);
	untar_free(u);
	if (x->kept)
		(void)fclose(take(x->kept));
	if (x->code)
		return x->code;
	return r < 0 ? fail_usage("%s: %s", name, e.text) : 0;
}

/* One that is there already would have files of two. */
static int make_session(const struct cli *cli, const char *text, char **ret_id)
{
	const char *slash = strchr(text, '/');
	if (!slash)
		return fail_usage("'%s' is no USER/GOAL", text);
	auto_free char *user = xstrndup(text, (size_t)(slash - text));
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX), body = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/sessions?user=");
	url_encode(&path, user);
	buf_puts(&path, "&goal=");
	url_encode(&path, slash + 1);
	struct jw w = JW_INIT(&body);
	jw_open(&w, NULL, '{');
	jw_str(&w, "userId", user);
	jw_str(&w, "goalId", slash + 1);
	jw_close(&w, '}');
	if (path.failed || body.failed)
		return fail_usage("'%.64s...' is too long for a session", text);
	auto_json struct json *there = NULL, *made = NULL;
	int r = query_get(cli, path.p, &there);
	if (r == 0 && json_first(json_get(there, "sessions")))
		r = fail_usage("there is a session '%s' already: import into another one", text);
	const struct client_request req = {
	        .method = "POST", .path = "/v1/sessions", .body = body.p, .body_len = body.len};
	if (r == 0)
		r = query_send(cli, &req, &made);
	if (r == 0)
		*ret_id = xstrdup(json_str(made, "sessionId", ""));
	return r;
}

/* It is in use until the jail of its last file has gone, which takes milliseconds. */
static void forget(const struct cli *cli, const char *id)
{
	auto_free char *path = xasprintf("/v1/sessions/%s", id);
	const struct client_request req = {.method = "DELETE", .path = path};
	const struct timespec pause = {.tv_nsec = 50000000};
	for (int i = 0; i < FORGET_TRIES; i++) {
		struct err e;
		auto_client struct client *c = client_open(&cli->peer, &req, &e);
		int status = c ? client_status(c, &e) : e.code;
		if (status == 204)
			return;
		if (status != 409)
			break;
		nanosleep(&pause, NULL);
	}
	fail_note("session %s is left with a part of the archive", id);
}

int session_import(const struct cli *cli, const char *session, const char *in, bool home)
{
	bool piped = !in || strcmp(in, "-") == 0;
	auto_close int file = piped ? -1 : open(in, O_RDONLY | O_CLOEXEC);
	if (!piped && file < 0)
		return fail_usage("%s: %s", in, strerror(errno));
	struct import x = {.cli = cli, .home = home};
	int r = make_session(cli, session, &x.id);
	if (r == 0)
		r = feed(&x, piped ? STDIN_FILENO : file, piped ? "stdin" : in);
	if (r == 0 && !x.ours)
		r = fail_usage("%s has neither workspace/ nor session.json: it is no archive of "
		               "`abctl session export`",
		        piped ? "stdin" : in);
	if (r && x.id)
		forget(cli, x.id);
	if (r == 0 && x.left)
		fail_note("%u file%s of the home left out: --home takes them", x.left,
		        x.left == 1 ? " is" : "s are");
	if (r == 0)
		printf("%s has %u file%s\n", x.id, x.files, x.files == 1 ? "" : "s");
	free(x.id);
	return r;
}
