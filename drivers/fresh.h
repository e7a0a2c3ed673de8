/*
 * fresh.h - ids under which an agent has asked, each good for one question.
 *
 * An answer names the id of what it answers.  Were an id used again, an answer
 * to what a person has read would allow what came in its place.  So the second
 * question of an id is refused, whether the first is still open or not.
 */
#ifndef DRIVERS_FRESH_H
#define DRIVERS_FRESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRESH_MAX = 65536 /* questions of a run; beyond it none is fresh */ };

struct fresh {
	uint64_t *slots; /* owned: hashes of ids, 0: free */
	size_t n, room;  /* room is a power of two, or 0 */
};

/* true, once for each id (or, by chance of 2^-64, for two that are then taken for one). */
bool fresh_take(struct fresh *f, const char *id);
void fresh_done(struct fresh *f);

#endif
