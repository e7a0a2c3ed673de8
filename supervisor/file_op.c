#include "supervisor/file_op.h"

#include "base/fd.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/http.h"
#include "supervisor/problem.h"
#include "supervisor/visit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	TIME_MS = 60000,  /* besides what its bytes may take: */
	BYTES_A_MS = 128, /* 128 KB a second are a slow line */
	TIME_MOST_MS = 4 * 3600 * 1000,
};

/* ---- life ---- */

static void on_clock(struct op *o, int res, uint32_t flags);

void file_op_bury(struct file_op *op)
{
	if (op->ready.inflight || op->clock.inflight)
		return;
	if (op->freed)
		op->freed(op);
	fd_close(op->fd);
	free((char *)(uintptr_t)op->path);
	free(op->kind);
	free(op);
}

void file_op_end(struct file_op *op)
{
	if (op->over)
		return;
	op->over = true;
	op->request = NULL;
	files_close(take(op->files));
	visit_end(take(op->visit));
	if (op->ready.inflight)
		loop_cancel(op->d->loop, &op->ready);
	/* Freed on the loop: this may be within a callback of the worker's or the client's. */
	if (op->clock.inflight)
		loop_cancel(op->d->loop, &op->clock);
	else
		loop_timeout(op->d->loop, &op->clock, 0, on_clock);
}

/* A worker that writes is let see that no more comes, and clean up, before its jail may go. */
static void on_client_gone(void *ctx)
{
	struct file_op *op = ctx;
	op->request = NULL;
	if (op->writes)
		fd_close(take_fd(op->fd));
	else
		file_op_end(op);
}

void file_op_reply(struct file_op *op, int status, struct buf *json)
{
	if (!op->request) {
		file_op_end(op);
		return;
	}
	http_on_gone(op->request, NULL, NULL);
	http_reply(op->request, status, json ? "application/json" : NULL, json);
	file_op_end(op);
}

/* ---- refusals ---- */

static const struct {
	int status, code;
	const char *text;
} refusals[] = {
        {-ENOENT, -ENOENT, "there is no such file"},
        {-ENOTDIR, -ENOENT, "a part of the path is no directory"},
        {-ELOOP, -EACCES, "a part of the path is a symbolic link, and none is followed"},
        {-EXDEV, -EACCES, "the path leads out of the workspace, or the home"},
        {-EACCES, -EACCES, "the agent itself may not do this"},
        {-EPERM, -EACCES, "the agent itself may not do this"},
        {-EEXIST, -EEXIST, "it is there already"},
        {-EISDIR, -EBUSY, "it is a directory"},
        {-ENOTEMPTY, -EBUSY, "the directory is not empty"},
        {-EBUSY, -EBUSY, "it is in use, as a place where something is mounted"},
        {-EDQUOT, -EDQUOT, "the session's limit of disk or files is met: delete some"},
        {-ENOSPC, -EDQUOT, "the session's limit of disk or files is met: delete some"},
        {-EFBIG, -E2BIG, "it is longer than a file of this session may be"},
        {-EINVAL, -EINVAL, "this is neither a regular file nor a directory"},
        {-ENXIO, -EINVAL, "this is neither a regular file nor a directory"},
        {-ENAMETOOLONG, -EINVAL, "the path or a part of it is too long"},
        {-ECONNRESET, -EBUSY, "the jail has ended meanwhile: try again"},
        {-EPIPE, -EINVAL, "the body has ended before its end"},
};

void file_op_fail(struct file_op *op, int status)
{
	struct err e;
	if (!op->request) {
		file_op_end(op);
		return;
	}
	err_set(&e, status, "'%.160s': %s", op->path, strerror(-status));
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
		if (refusals[i].status == status)
			err_set(&e, refusals[i].code, "'%.160s': %s", op->path, refusals[i].text);
	http_on_gone(op->request, NULL, NULL);
	problem_err(op->request, &e, PROBLEM_INTERNAL);
	file_op_end(op);
}

/* ---- beginning ---- */

/* A stream that has begun is cut: its client sees that bytes are missing. */
static void cut(struct file_op *op)
{
	files_close(take(op->files));
	visit_end(take(op->visit));
	fd_close(take_fd(op->fd));
	http_wake(op->request);
}

static void on_clock(struct op *o, int res, uint32_t flags)
{
	struct file_op *op = container_of(o, struct file_op, clock);
	(void)flags;
	if (op->over) {
		file_op_bury(op);
	} else if (res == -ETIME && op->streams) {
		cut(op);
	} else if (res == -ETIME && !op->request) {
		file_op_end(op);
	} else if (res == -ETIME) {
		http_on_gone(op->request, NULL, NULL);
		problem_reply(op->request, PROBLEM_CONFLICT, NULL,
		        "'%.160s' has taken too long: others wait for the session", op->path);
		file_op_end(op);
	}
}

static void on_here(void *ctx, int worker, const struct err *e)
{
	struct file_op *op = ctx;
	if (worker < 0) {
		http_on_gone(op->request, NULL, NULL);
		problem_err(op->request, e, PROBLEM_POLICY_UNMET);
		file_op_end(op);
		return;
	}
	op->files = files_new(op->d->loop, worker);
	op->begin(op);
}

static int64_t time_for(uint64_t bytes)
{
	uint64_t ms = bytes / BYTES_A_MS;
	return ms < TIME_MOST_MS ? TIME_MS + (int64_t)ms : TIME_MOST_MS;
}

struct file_op *file_op_new(struct daemon *d, struct http_request *r, uint32_t tree, uint64_t bytes,
        void *kind, void (*begin)(struct file_op *op), void (*freed)(struct file_op *op))
{
	struct err e;
	const char *path = http_param(r, 1);
	struct file_op *op = xnew(struct file_op);
	op->d = d;
	op->fd = -1;
	op->path = xstrdup(path ? path : "");
	op->tree = tree;
	op->kind = kind;
	op->begin = begin;
	op->freed = freed;
	op->visit = visit_begin(d->visits, http_param(r, 0), on_here, op, &e);
	if (!op->visit) {
		problem_err(r, &e, PROBLEM_POLICY_UNMET);
		file_op_bury(op);
		return NULL;
	}
	op->request = r;
	http_on_gone(r, on_client_gone, op);
	loop_timeout(d->loop, &op->clock, time_for(bytes), on_clock);
	return op;
}

int file_op_pipe(struct file_op *op, bool we_read)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	op->fd = ends[we_read ? 0 : 1];
	auto_close int theirs = ends[we_read ? 1 : 0];
	int rc = fd_set_nonblock(op->fd, 1);
	return rc < 0 ? rc : take_fd(theirs);
}
