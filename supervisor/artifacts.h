/*
 * artifacts.h - results of a run: files of the workspace that match the
 * harness's globs, copied into <state>/artifacts/<run>/<n> with their SHA-256.
 *
 * Collected through the file worker after the last process of the jail is
 * dead.  What is not a plain file, has an odd name or is beyond a bound is
 * skipped and named, never followed.  Copying goes in slices of the loop.
 */
#ifndef SUPERVISOR_ARTIFACTS_H
#define SUPERVISOR_ARTIFACTS_H

#include "base/err.h"
#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct artifacts; /* one collection */
struct guard;
struct veil;
struct loop;
struct syncs;

enum {
	ARTIFACT_SLICE = 256 << 10, /* copied per loop turn: about a millisecond with digest */
	ARTIFACT_SLICE_LOOKED = 16 << 10, /* at the most that looking may cost, 3 ms */
};
#define ARTIFACT_FILE_MAX  ((uint64_t)2 << 30) /* one file */
#define ARTIFACT_TOTAL_MAX ((uint64_t)8 << 30) /* one run */

struct artifact {
	char *path; /* owned; relative to the workspace, UTF-8 */
	uint64_t bytes;
	char sha256[65];
};

struct artifact_skip {
	char *path;         /* owned; made valid UTF-8 */
	const char *reason; /* static */
};

struct artifacts_result {
	struct artifact *files; /* owned */
	size_t nfiles;
	struct artifact_skip *skipped; /* owned */
	size_t nskipped;
};
void artifacts_result_done(struct artifacts_result *r);

/* done() is called once, never from within collect.  e is NULL when all went well; the result
 * holds what was kept in any case and is taken by the callee. */
typedef void artifacts_done_fn(void *ctx, struct artifacts_result *r, const struct err *e);

/* Takes worker_fd.  No more than `room` bytes are written; what does not fit, or the disk does not
 * take, is skipped.  With a guard (NULL: none) each path and its bytes are looked through as they
 * are copied; what it denies ends it with -EKEYREJECTED, and guard_rule says why.  root_fd
 * (<state>/artifacts), globs (NULL-terminated) and guard are borrowed until done(), and so is the
 * veil (NULL: none): what has a secret in its name is skipped, and named without it. */
struct artifacts *artifacts_collect(struct loop *l, int worker_fd, int root_fd, const char *run,
        char *const *globs, uint64_t room, struct guard *guard, const struct veil *veil,
        artifacts_done_fn *done, void *ctx);
/* Stops early: done() comes with what there is and -ETIMEDOUT. */
void artifacts_abort(struct artifacts *a);

/* On a thread that may wait for the disk: the first `n` copies of a run, and that they are there.
 * 0 or -errno with *e. */
MUST_USE int artifacts_sync(int root_fd, const char *run, size_t n, struct syncs *s, struct err *e);
/* None of them is kept after all: all are among what was skipped, as far as that names them. */
void artifacts_lose(struct artifacts_result *r, const char *reason);
/* The kept copy number `n` of a run: fd (owned) or -errno. */
MUST_USE int artifacts_open(int root_fd, const char *run, size_t n, struct err *e);
/* Deletes at most so many kept copies of a run: 1 where there may be more, 0: none is left. */
MUST_USE int artifacts_remove_some(int root_fd, const char *run, size_t most, struct err *e);
/* Deletes all kept copies of a run. */
int artifacts_remove(int root_fd, const char *run, struct err *e);

#endif
