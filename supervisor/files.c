#include "supervisor/files.h"

#include "base/fd.h"
#include "base/mem.h"
#include "supervisor/loop.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

enum { BATCH = 64 /* entries a turn */ };

struct files {
	struct loop *loop;
	int sock; /* owned */
	struct op in, fail;
	files_entry_fn *entry;
	files_done_fn *done; /* NULL: nothing asked */
	void *ctx;
	int failed; /* -errno of a send, told from the loop */
	bool closed;
};

static void readable(struct op *op, int res, uint32_t flags);

struct files *files_new(struct loop *l, int sock)
{
	struct files *f = xnew(struct files);
	f->loop = l;
	f->sock = sock;
	f->failed = fd_set_nonblock(sock, 1); /* told by the first request's send, if ever */
	return f;
}

static void bury(struct files *f)
{
	if (!f->closed || f->in.inflight || f->fail.inflight)
		return;
	fd_close(f->sock);
	free(f);
}

static void failed_later(struct op *op, int res, uint32_t flags);

void files_close(struct files *f)
{
	if (!f || f->closed)
		return;
	f->closed = true;
	if (f->in.inflight)
		loop_cancel(f->loop, &f->in);
	else if (!f->fail.inflight) /* maybe within a callback of ours: freed on the way out */
		loop_timeout(f->loop, &f->fail, 0, failed_later);
}

static void finish(struct files *f, int status, int fd, bool truncated)
{
	files_done_fn *done = f->done;
	f->done = NULL;
	if (done)
		done(f->ctx, status, fd, truncated);
	else
		fd_close(fd);
}

static void failed_later(struct op *op, int res, uint32_t flags)
{
	(void)res;
	(void)flags;
	struct files *f = container_of(op, struct files, fail);
	if (!f->closed)
		finish(f, f->failed, -1, false);
	bury(f);
}

/* false: the request is answered, or the socket is at its end. */
static bool take_reply(struct files *f, int n, const void *buf, int fds[MSG_FDS])
{
	const struct worker_reply *r = buf;
	if (n != sizeof(*r) || !msg_text_ok(r->path, sizeof(r->path)) || !f->done) {
		finish(f, n == 0 ? -ECONNRESET : -EBADMSG, -1, false);
		return false;
	}
	if (r->head.type == WORKER_ENTRY) {
		if (f->entry)
			f->entry(f->ctx, r);
		return true;
	}
	finish(f, r->status, r->status == 0 ? take_fd(fds[0]) : -1, r->truncated != 0);
	return false;
}

static void readable(struct op *op, int res, uint32_t flags)
{
	(void)flags;
	struct files *f = container_of(op, struct files, in);
	bool more = !f->closed && res >= 0;
	if (!f->closed && res < 0)
		finish(f, res, -1, false);
	for (int i = 0; i < BATCH && more; i++) {
		_Alignas(8) char buf[MSG_MAX];
		int fds[MSG_FDS];
		int n = msg_recv(f->sock, buf, fds);
		if (n == -EAGAIN)
			break;
		if (n == -ECONNRESET) /* it was killed before it had read all */
			n = 0;
		more = take_reply(f, n < 0 ? -1 : n, buf, fds) && !f->closed;
		for (int k = 0; k < MSG_FDS; k++)
			fd_close(fds[k]);
	}
	if (more)
		loop_poll(f->loop, &f->in, f->sock, POLLIN, false, readable);
	bury(f);
}

static void request(
        struct files *f, struct worker_request *q, enum worker_op op, const char *path, int fd)
{
	q->head.type = (uint16_t)op;
	int rc = str_copy(q->path, sizeof(q->path), path)
	                 ? msg_send(f->sock, q, sizeof(*q), &fd, fd >= 0)
	                 : -ENAMETOOLONG;
	if (rc == 0) {
		if (!f->in.inflight)
			loop_poll(f->loop, &f->in, f->sock, POLLIN, false, readable);
		return;
	}
	f->failed = rc == -EPIPE ? -ECONNRESET : rc;
	loop_timeout(f->loop, &f->fail, 0, failed_later);
}

static void expect(struct files *f, files_entry_fn *entry, files_done_fn *done, void *ctx)
{
	f->entry = entry;
	f->done = done;
	f->ctx = ctx;
}

void files_list(struct files *f, const char *path, uint32_t flags, files_entry_fn *entry,
        files_done_fn *done, void *ctx)
{
	struct worker_request q = {.flags = flags};
	expect(f, entry, done, ctx);
	request(f, &q, WORKER_LIST, path, -1);
}

void files_open(struct files *f, const char *path, files_done_fn *done, void *ctx)
{
	struct worker_request q = {0};
	expect(f, NULL, done, ctx);
	request(f, &q, WORKER_OPEN, path, -1);
}

void files_read(struct files *f, const char *path, uint64_t offset, uint64_t bytes, uint32_t flags,
        int to, files_entry_fn *entry, files_done_fn *done, void *ctx)
{
	struct worker_request q = {.bytes = bytes, .offset = offset, .flags = flags};
	expect(f, entry, done, ctx);
	request(f, &q, WORKER_READ, path, to);
}

void files_write(struct files *f, const char *path, uint32_t flags, uint32_t mode,
        const char *bytes, size_t n, files_done_fn *done, void *ctx)
{
	struct worker_request q = {.bytes = n, .mode = mode, .flags = flags};
	expect(f, NULL, done, ctx);
	auto_close int fd = fd_sealed_memfd("file", bytes, n);
	if (fd < 0) {
		f->failed = fd;
		loop_timeout(f->loop, &f->fail, 0, failed_later);
		return;
	}
	request(f, &q, WORKER_WRITE, path, fd);
}

void files_write_pipe(struct files *f, const char *path, uint32_t flags, uint32_t mode, int from,
        uint64_t n, files_done_fn *done, void *ctx)
{
	struct worker_request q = {.bytes = n, .mode = mode, .flags = flags | WORKER_PIPE};
	expect(f, NULL, done, ctx);
	request(f, &q, WORKER_WRITE, path, from);
}

void files_mkdir(struct files *f, const char *path, uint32_t flags, files_done_fn *done, void *ctx)
{
	struct worker_request q = {.flags = flags};
	expect(f, NULL, done, ctx);
	request(f, &q, WORKER_MKDIR, path, -1);
}

void files_remove(struct files *f, const char *path, uint32_t flags, files_done_fn *done, void *ctx)
{
	struct worker_request q = {.flags = flags};
	expect(f, NULL, done, ctx);
	request(f, &q, WORKER_REMOVE, path, -1);
}
