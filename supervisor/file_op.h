/*
 * file_op.h - one request for a file of a session: a worker in its workspace (visit.h), what is
 * asked of that (files.h), and an end of both whatever the client and the jail do.
 *
 * Order: file_op_new; `begin` is called when op->files is there; then exactly one of
 * file_op_reply, file_op_fail and file_op_end.  A client that leaves ends it, and so does the time:
 * while it goes on the session's runs may have to wait for it.
 */
#ifndef SUPERVISOR_FILE_OP_H
#define SUPERVISOR_FILE_OP_H

#include "base/buf.h"
#include "base/err.h"
#include "supervisor/files.h"
#include "supervisor/loop.h"

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct http_request;
struct visit;

struct file_op {
	struct daemon *d;             /* borrowed */
	struct http_request *request; /* borrowed; NULL once it is answered, or the client left */
	struct files *files;          /* owned, once `begin` is called */
	const char *path;             /* owned; in the tree, "" for itself */
	uint32_t tree;                /* WORKER_IN_HOME, or 0: the workspace */
	int fd;                       /* owned: our end of a pipe to the worker, or -1 */
	struct op ready;              /* of fd */
	bool streams;                 /* the answer has begun, and has an end of its own */
	bool writes;                  /* the worker takes bytes, and is to see their end */
	void *kind;                   /* owned: what this kind of request has besides */
	/* for this module alone */
	struct visit *visit;
	void (*begin)(struct file_op *op);
	void (*freed)(struct file_op *op); /* or NULL: kind's own parts */
	struct op clock;
	bool over;
};

/* {id} and the path after it are the request's.  `tree`: as of the struct; `bytes`: how many may
 * have to be carried; `kind` is taken.  NULL: it was refused, and is answered. */
struct file_op *file_op_new(struct daemon *d, struct http_request *r, uint32_t tree, uint64_t bytes,
        void *kind, void (*begin)(struct file_op *op), void (*freed)(struct file_op *op));
/* A pipe to or from the worker; ours is op->fd.  The worker's end is owned by the caller; -errno.
 */
MUST_USE int file_op_pipe(struct file_op *op, bool we_read);

void file_op_reply(struct file_op *op, int status, struct buf *json); /* NULL: no body */
/* What the worker said, as a refusal. */
void file_op_fail(struct file_op *op, int status);
void file_op_end(struct file_op *op); /* the request is somebody else's, or gone */
/* From the completion of op->ready, after the end. */
void file_op_bury(struct file_op *op);

#endif
