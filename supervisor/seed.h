/*
 * seed.h - files that must be in the jail before the agent starts: the
 * harness's seed files (workspace, only on the session's first run, never over
 * an existing file) and the driver's own files (home).
 */
#ifndef SUPERVISOR_SEED_H
#define SUPERVISOR_SEED_H

#include "base/err.h"
#include "drivers/driver.h"
#include "policy/harness.h"

#include <stdbool.h>

struct loop;
struct seed;

/* done() comes once, from the loop: 0, or -errno with the file's name in *e. */
typedef void seed_done_fn(void *ctx, int rc, const struct err *e);

/* Takes worker_fd.  h, c are borrowed until done() or seed_close. */
struct seed *seed_start(struct loop *l, int worker_fd, const struct harness *h, bool first_run,
        const struct driver_command *c, seed_done_fn *done, void *ctx);
void seed_close(struct seed *s); /* no more callbacks; NULL is fine */
/* Is there anything to write? */
bool seed_needed(const struct harness *h, bool first_run, const struct driver_command *c);

#endif
