/*
 * save.h - the body of an answer as it comes, which can be larger than memory, into a file.
 *
 * Each returns an exit code, after having said why on stderr, but for the first.
 */
#ifndef ABCTL_SAVE_H
#define ABCTL_SAVE_H

#include "base/digest.h"
#include "client/client.h"

#include <sys/types.h>

/* Says nothing: 0, or -errno with *e; what has come until then is written.  Not more than `most`
 * bytes are; each goes into d, too (NULL: none). */
MUST_USE int save_bytes(
        struct client *c, int fd, const char *to, uint64_t most, struct digest *d, struct err *e);
/* `to` names it in errors. */
MUST_USE int save_to(struct client *c, int fd, const char *to);
/* Whole or not at all: a cut file under the right name would be taken for the result. */
MUST_USE int save_file(struct client *c, const char *to, mode_t mode);

/* An archive that `make` writes: likewise, but that one which lacks something (EXIT_FAILED) is
 * kept; only the caller may read it; "-" or NULL: to stdout,
 * unless that is a terminal. */
typedef int save_make_fn(void *ctx, int fd, const char *name);
MUST_USE int save_archive(const char *out, save_make_fn *make, void *ctx);

#endif
