/*
 * /v1/sessions/{id}/files and below: the files of a workspace; .../home: those of the agent's home.
 *
 * Their bytes go through a pipe between the file worker and this process, which opens none of them:
 * a disk that hangs, a file that is cut short or a link that is put in its place is the worker's
 * matter.
 */
#include "supervisor/api.h"

#include "base/fd.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/download.h"
#include "supervisor/file_list.h"
#include "supervisor/file_op.h"
#include "supervisor/http.h"
#include "supervisor/page.h"
#include "supervisor/problem.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More than any disk limit that is in use; the session's own limits are met long before. */
#define PUT_MAX (UINT64_C(64) << 30)

enum { PUT_BUFFER = 64 << 10 };

/* ---- GET ---- */

struct get {
	struct range range;
	struct page page;
	struct file_list *list; /* owned, or NULL */
	size_t skip;            /* of an entry's path: the directory's own part */
	uint64_t left;          /* bytes that were announced */
};

static void get_freed(struct file_op *op)
{
	struct get *g = op->kind;
	file_list_free(g->list);
}

static void on_pipe(struct op *o, int res, uint32_t flags)
{
	struct file_op *op = container_of(o, struct file_op, ready);
	(void)res;
	(void)flags;
	if (op->over)
		file_op_bury(op);
	else
		http_wake(op->request);
}

static ssize_t get_pull(void *ctx, char *p, size_t max)
{
	struct file_op *op = ctx;
	struct get *g = op->kind;
	if (g->left == 0)
		return HTTP_END;
	ssize_t n = read(op->fd, p, max < g->left ? max : (size_t)g->left);
	if (n < 0 && errno == EAGAIN) {
		if (!op->ready.inflight)
			loop_poll(op->d->loop, &op->ready, op->fd, POLLIN, false, on_pipe);
		return HTTP_WAIT;
	}
	if (n <= 0)
		return HTTP_ABORT; /* cut short meanwhile, or the jail has ended */
	g->left -= (uint64_t)n;
	return n;
}

static void get_gone(void *ctx)
{
	file_op_end(ctx);
}

/* What the file is, before its bytes. */
static void on_file(void *ctx, const struct worker_reply *x)
{
	struct file_op *op = ctx;
	struct get *g = op->kind;
	char mode[16];
	uint64_t at;
	if (op->streams)
		return;
	int status = download_head(op->request, op->path, x->bytes, &g->range, &at, &g->left);
	if (status >= 300) {
		file_op_end(op);
		return;
	}
	op->streams = true;
	(void)snprintf(mode, sizeof(mode), "%04o", x->mode & 0777);
	http_add_header(op->request, "Agentbox-Mode", mode);
	http_add_header(op->request, "Cache-Control", "no-store");
	const struct http_source source = {.pull = get_pull, .gone = get_gone, .ctx = op};
	/* Never by its name: application/json is a directory's. */
	http_stream(op->request, status, "application/octet-stream", (int64_t)g->left, &source);
}

static void on_entry(void *ctx, const struct worker_reply *x)
{
	struct file_op *op = ctx;
	struct get *g = op->kind;
	if (strlen(x->path) > g->skip)
		file_list_add(g->list, x->path + g->skip, x->mode, x->bytes, x->changed_ms);
}

static void on_listed(void *ctx, int status, int fd, bool truncated)
{
	struct file_op *op = ctx;
	struct get *g = op->kind;
	(void)fd;
	if (status < 0) {
		file_op_fail(op, status);
		return;
	}
	struct buf json;
	file_list_json(g->list, op->path, truncated, &json);
	file_op_reply(op, 200, &json);
}

static void list(struct file_op *op)
{
	struct get *g = op->kind;
	size_t n = strlen(op->path);
	g->skip = n && op->path[n - 1] != '/' ? n + 1 : n;
	g->list = file_list_new(g->page.limit, g->page.cursor);
	files_list(op->files, op->path, WORKER_FLAT | op->tree, on_entry, on_listed, op);
}

static void on_read(void *ctx, int status, int fd, bool truncated)
{
	struct file_op *op = ctx;
	(void)fd;
	(void)truncated;
	if (op->streams) /* the end of the pipe says it */
		return;
	if (status == -EISDIR)
		list(op);
	else
		file_op_fail(op, status ? status : -ECONNRESET);
}

static void get_begin(struct file_op *op)
{
	const struct get *g = op->kind;
	auto_close int to = file_op_pipe(op, true);
	if (to < 0)
		file_op_fail(op, to);
	else
		files_read(op->files, op->path, g->range.at, g->range.n,
		        (g->range.tail ? WORKER_TAIL : 0) | op->tree, to, on_file, on_read, op);
}

static void get(struct daemon *d, struct http_request *r, uint32_t tree)
{
	struct err e;
	struct get *g = xnew(struct get);
	if (page_read(r, NULL, &g->page, &e) < 0) {
		problem_err(r, &e, PROBLEM_BAD_REQUEST);
		free(g);
		return;
	}
	range_read(http_header(r, "Range"), &g->range);
	/* How long it may take is known only when it has begun: as long as the longest. */
	(void)file_op_new(d, r, tree, UINT64_MAX, g, get_begin, get_freed);
}

void api_file_get(struct daemon *d, struct http_request *r)
{
	get(d, r, 0);
}

void api_home_get(struct daemon *d, struct http_request *r)
{
	get(d, r, WORKER_IN_HOME);
}

/* ---- PUT ---- */

struct put {
	uint64_t bytes;
	uint32_t mode, flags;
	bool begun, ended, broken; /* broken: the worker reads nothing more */
	size_t have, sent;         /* of buf */
	char buf[PUT_BUFFER];
};

static void put_flush(struct file_op *op);

static void on_room(struct op *o, int res, uint32_t flags)
{
	struct file_op *op = container_of(o, struct file_op, ready);
	(void)res;
	(void)flags;
	if (op->over) {
		file_op_bury(op);
		return;
	}
	put_flush(op);
	if (op->request)
		http_wake(op->request);
}

static void put_flush(struct file_op *op)
{
	struct put *p = op->kind;
	while (p->sent < p->have && !p->broken) {
		ssize_t n = write(op->fd, p->buf + p->sent, p->have - p->sent);
		if (n < 0 && errno == EAGAIN) {
			if (!op->ready.inflight)
				loop_poll(op->d->loop, &op->ready, op->fd, POLLOUT, false, on_room);
			return;
		}
		p->broken = n < 0;
		p->sent += n < 0 ? 0 : (size_t)n;
	}
	p->have = p->sent = 0;
	if (p->ended)
		fd_close(take_fd(op->fd));
}

static size_t put_room(void *ctx)
{
	const struct file_op *op = ctx;
	const struct put *p = op->kind;
	return p->begun ? sizeof(p->buf) - p->have : 0;
}

static void put_push(void *ctx, const char *bytes, size_t n)
{
	struct file_op *op = ctx;
	struct put *p = op->kind;
	if (op->over)
		return;
	memcpy(p->buf + p->have, bytes, n);
	p->have += n;
	if (!op->ready.inflight)
		put_flush(op);
}

static void put_end(void *ctx)
{
	struct file_op *op = ctx;
	struct put *p = op->kind;
	p->ended = true;
	if (p->begun && !op->over && !op->ready.inflight)
		put_flush(op);
}

static void on_done(void *ctx, int status, int fd, bool truncated)
{
	struct file_op *op = ctx;
	(void)fd;
	(void)truncated;
	if (status < 0)
		file_op_fail(op, status);
	else
		file_op_reply(op, 204, NULL);
}

static void put_begin(struct file_op *op)
{
	struct put *p = op->kind;
	auto_close int from = file_op_pipe(op, false);
	if (from < 0) {
		file_op_fail(op, from);
		return;
	}
	p->begun = op->writes = true;
	files_write_pipe(
	        op->files, op->path, p->flags | op->tree, p->mode, from, p->bytes, on_done, op);
	put_flush(op);
	http_wake(op->request);
}

static int read_mode(struct http_request *r, uint32_t *ret, struct err *e)
{
	const char *text = http_query(r, "mode");
	char *end = NULL;
	unsigned long n = text ? strtoul(text, &end, 8) : 0644;
	if (text && (text[0] < '0' || text[0] > '7' || *end || n > 0777))
		return err_set(e, -EINVAL, "mode: must be permission bits as octal digits (0644)");
	/* Its owner is the agent, and its group is nobody else's. */
	*ret = (n & 0111 ? 0755u : 0644u) & (uint32_t)(n | 0644);
	return 0;
}

static int read_length(struct http_request *r, uint64_t *ret, struct err *e)
{
	const char *text = http_header(r, "Content-Length");
	if (!text && http_has_body(r))
		return err_set(e, -EINVAL,
		        "say how long the file is (Content-Length): what ends early must not be "
		        "taken for all of it");
	*ret = text ? strtoull(text, NULL, 10) : 0; /* the server has checked it */
	return *ret > PUT_MAX ? err_set(e, -E2BIG, "a file may have at most %llu bytes",
	                                (unsigned long long)PUT_MAX)
	                      : 0;
}

static void mkdir_begin(struct file_op *op)
{
	files_mkdir(op->files, op->path, op->tree, on_done, op);
}

static void put(struct daemon *d, struct http_request *r, uint32_t tree)
{
	struct err e;
	bool directory = false, keep = false;
	struct put *p = xnew(struct put);
	int rc = read_mode(r, &p->mode, &e);
	if (rc == 0)
		rc = read_length(r, &p->bytes, &e);
	if (rc == 0)
		rc = http_query_flag(r, "directory", &directory, &e);
	if (rc == 0)
		rc = http_query_flag(r, "keep", &keep, &e);
	if (rc == 0 && directory && p->bytes)
		rc = err_set(&e, -EINVAL, "directory=1: a directory has no bytes");
	if (rc < 0) {
		problem_err(r, &e, PROBLEM_BAD_REQUEST);
		free(p);
		return;
	}
	p->flags = keep ? WORKER_NO_REPLACE : 0;
	struct file_op *op =
	        file_op_new(d, r, tree, p->bytes, p, directory ? mkdir_begin : put_begin, NULL);
	if (!op)
		return;
	const struct http_sink sink = {
	        .room = put_room, .push = put_push, .end = put_end, .ctx = op};
	http_take_body(r, &sink);
}

void api_file_put(struct daemon *d, struct http_request *r)
{
	put(d, r, 0);
}

void api_home_put(struct daemon *d, struct http_request *r)
{
	put(d, r, WORKER_IN_HOME);
}

/* ---- DELETE ---- */

struct removal {
	uint32_t flags;
};

static void delete_begin(struct file_op *op)
{
	const struct removal *x = op->kind;
	files_remove(op->files, op->path, x->flags, on_done, op);
}

void api_file_delete(struct daemon *d, struct http_request *r)
{
	struct err e;
	bool recursive = false;
	if (http_query_flag(r, "recursive", &recursive, &e) < 0) {
		problem_err(r, &e, PROBLEM_BAD_REQUEST);
		return;
	}
	struct removal *x = xnew(struct removal);
	x->flags = recursive ? WORKER_TREE : 0;
	(void)file_op_new(d, r, 0, 0, x, delete_begin, NULL);
}
