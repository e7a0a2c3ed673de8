/*
 * space.h - how much room the disk of the state directory has.
 *
 * A part of it is a reserve (state.reserve): below it no run is accepted and none begun, and those
 * that run are told; below a quarter of it nothing more is read from agents, who wait.  What has
 * been read, and the results of runs, are written into the rest.  Anybody may fill the disk, so all
 * of it is looked at again and again, and goes on by itself when there is room.
 *
 * Looks are system calls of a microsecond; none happens while nothing runs and there is room.
 */
#ifndef SUPERVISOR_SPACE_H
#define SUPERVISOR_SPACE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct space;

struct space_calls {
	bool (*busy)(void *ctx); /* something runs: it must be looked again */
	/* From the loop: while it is low, again at each look, and once when it no longer is. */
	void (*low)(void *ctx);
	void (*room)(void *ctx);
};

/* `dirfd` and `calls` are borrowed for life. */
struct space *space_new(struct loop *l, int dirfd, const struct space_calls *calls, void *ctx);
void space_free(struct space *s);
/* Of a small disk it is a sixteenth, where that is less. */
void space_reserve(struct space *s, uint64_t bytes);
/* Something runs from now on. */
void space_mind(struct space *s);

bool space_low(struct space *s);
bool space_out(struct space *s);                          /* nothing more is to be read */
MUST_USE int space_check(struct space *s, struct err *e); /* -ENOSPC where it is low */
uint64_t space_left(struct space *s);                     /* bytes */
uint64_t space_for_results(struct space *s);              /* bytes beyond half of the reserve */
uint64_t space_reserved(const struct space *s);           /* bytes */

#endif
