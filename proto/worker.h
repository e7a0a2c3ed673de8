/*
 * worker.h - supervisor <-> agentbox-worker: files of a workspace.
 *
 * The worker runs in the jail's mount namespace under the agent's uid with a
 * filter of a dozen calls; the supervisor never opens a path there.  One request
 * at a time, answered in order.  Paths are relative to /workspace and resolved
 * with openat2(BENEATH | NO_SYMLINKS | NO_MAGICLINKS | NO_XDEV).
 */
#ifndef PROTO_WORKER_H
#define PROTO_WORKER_H

#include "proto/msg.h"

enum { WORKER_PATH_MAX = 4096 };

enum worker_op {
	WORKER_LIST =
	        1,     /* every entry below path: entries come as WORKER_ENTRY, then WORKER_DONE */
	WORKER_OPEN,   /* regular file to read: reply fd (the reader fstat()s it again) */
	WORKER_WRITE,  /* create or replace `path` (missing directories are made) with the bytes
	                  of the fd that comes along (sealed memfd, at most `bytes`) */
	WORKER_READ,   /* regular file, into the pipe that comes along: `bytes` of it from `offset`
	                  on, or what there is; first a WORKER_ENTRY that describes it */
	WORKER_MKDIR,  /* directory, with those above it; there already: fine */
	WORKER_REMOVE, /* file or link, or with WORKER_TREE directory and all below it */
	WORKER_ENTRY = 100,
	WORKER_DONE,
};

enum worker_flag {
	WORKER_NO_REPLACE = 1 << 0, /* WRITE: -EEXIST where the file is there */
	WORKER_IN_HOME = 1 << 1,    /* `path` is below the agent's home instead of the workspace */
	WORKER_PIPE = 1 << 2, /* WRITE: the fd is a pipe, of which exactly `bytes` are to come */
	WORKER_FLAT = 1 << 3, /* LIST: of the directory itself, nothing below its own */
	WORKER_TAIL = 1 << 4, /* READ: the last `bytes` */
	WORKER_TREE = 1 << 5, /* REMOVE */
};

struct worker_request {
	struct msg_head head;
	uint64_t bytes, offset;
	uint32_t mode; /* WRITE: permission bits, 0644 or 0755 */
	uint32_t flags;
	char path[WORKER_PATH_MAX];
};

/* ENTRY: one file (only S_ISREG and S_ISDIR carry sizes; others are named so that the listing is
 * honest, and never opened).  DONE: status of the whole request; `truncated` beyond the limit. */
struct worker_reply {
	struct msg_head head;
	int32_t status;     /* 0 or -errno */
	uint32_t mode;      /* st_mode */
	uint64_t bytes;     /* st_size */
	int64_t changed_ms; /* st_mtim */
	uint32_t nlink;
	uint32_t truncated;
	char path[WORKER_PATH_MAX]; /* relative, as bytes of the file system */
};

enum { WORKER_ENTRIES_MAX = 200000, WORKER_DEPTH_MAX = 64 };

#endif
