/*
 * untar.h - takes a tar archive apart as its bytes come: regular files, and nothing else of what
 * the format can say.
 *
 * The archive is a stranger's.  Links, devices and FIFOs, sparse files, names that are absolute,
 * have
 * "..", control characters or too many parts, a file without an end, a header whose sum is wrong,
 * more bytes or files than the limits,
 * an end that does not come: each ends it with an error that says which.  Names of
 * directories are skipped; owners, modes (but for "may be executed") and times mean nothing.
 *
 * Pure: bytes in, calls out.
 */
#ifndef ABCTL_UNTAR_H
#define ABCTL_UNTAR_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	UNTAR_NAME_MAX = 1024,
	UNTAR_DEPTH_MAX = 64,
	UNTAR_FILES_MAX = 100000,
};
#define UNTAR_BYTES_MAX (UINT64_C(2) << 30)

/* Each returns 0, or -errno with *e, which ends it. */
struct untar_calls {
	/* A file begins.  `name` is a relative path, borrowed for the call. */
	int (*file)(void *ctx, const char *name, bool executable, struct err *e);
	int (*data)(void *ctx, const void *p, size_t n, struct err *e);
	int (*end)(void *ctx, struct err *e); /* it is whole */
};

/* May a file have that name? */
MUST_USE int untar_check_name(const char *name, struct err *e);

struct untar; /* opaque */

/* `calls` and `ctx` are borrowed for life.  Returns owned. */
struct untar *untar_new(const struct untar_calls *calls, void *ctx);
/* Other limits than those above. */
void untar_allow(struct untar *u, uint64_t bytes, uint64_t files);
void untar_free(struct untar *u); /* NULL is fine */

MUST_USE int untar_feed(struct untar *u, const void *p, size_t n, struct err *e);
/* All bytes have come: was that a whole archive? */
MUST_USE int untar_end(struct untar *u, struct err *e);

#endif
