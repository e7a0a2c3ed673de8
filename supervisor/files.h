/*
 * files.h - the client of a jail's file worker (proto/worker.h): list, open,
 * write.  One request at a time; its callback comes from the loop, never from
 * within the call, and may make the next request or close.
 */
#ifndef SUPERVISOR_FILES_H
#define SUPERVISOR_FILES_H

#include "base/err.h"
#include "proto/worker.h"

struct files;
struct loop;

typedef void files_entry_fn(void *ctx, const struct worker_reply *entry);
/* status: 0 or -errno; fd: of OPEN, owned by the callee (-1 otherwise). */
typedef void files_done_fn(void *ctx, int status, int fd, bool truncated);

/* Takes the worker's socket. */
struct files *files_new(struct loop *l, int sock);
/* No more callbacks; the worker ends with its socket.  NULL is fine. */
void files_close(struct files *f);

/* Everything below `path` ("" for the workspace itself); flags: WORKER_FLAT. */
void files_list(struct files *f, const char *path, uint32_t flags, files_entry_fn *entry,
        files_done_fn *done, void *ctx);
void files_open(struct files *f, const char *path, files_done_fn *done, void *ctx);
/* `entry` hears what it is, then its bytes come through the pipe, whose writing end `to` is
 * (borrowed); flags: WORKER_TAIL. */
void files_read(struct files *f, const char *path, uint64_t offset, uint64_t bytes, uint32_t flags,
        int to, files_entry_fn *entry, files_done_fn *done, void *ctx);
/* flags: enum worker_flag.  The bytes are copied. */
void files_write(struct files *f, const char *path, uint32_t flags, uint32_t mode,
        const char *bytes, size_t n, files_done_fn *done, void *ctx);
/* Likewise n bytes that come through a pipe, whose reading end `from` is (borrowed). */
void files_write_pipe(struct files *f, const char *path, uint32_t flags, uint32_t mode, int from,
        uint64_t n, files_done_fn *done, void *ctx);
void files_mkdir(struct files *f, const char *path, uint32_t flags, files_done_fn *done, void *ctx);
/* flags: WORKER_TREE. */
void files_remove(
        struct files *f, const char *path, uint32_t flags, files_done_fn *done, void *ctx);

#endif
