/*
 * prompt.h - the prompt of a run, from open to start.
 */
#ifndef DRIVERS_PROMPT_H
#define DRIVERS_PROMPT_H

#include "drivers/driver.h"

struct prompt {
	char *p; /* owned */
	size_t n;
};

/* A copy, whatever its bytes. */
struct prompt prompt_of(const struct driver_spec *spec);
/* For start: all of it, then the end of stdin. */
MUST_USE int prompt_is_stdin(struct prompt *p, struct buf *to_stdin, bool *ret_eof);
void prompt_done(struct prompt *p);

#endif
