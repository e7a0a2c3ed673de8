/*
 * tail.h - the last LIMIT_FINAL_TEXT bytes of a text that comes in pieces.
 *
 * What it gives out starts at a whole UTF-8 character.
 */
#ifndef DRIVERS_TAIL_H
#define DRIVERS_TAIL_H

#include <stddef.h>

struct tail {
	char *p; /* owned */
	size_t len, room;
};

void tail_add(struct tail *t, const char *p, size_t n);
void tail_clear(struct tail *t);
char *tail_take(struct tail *t); /* returns owned, never NULL; empties the tail */
void tail_done(struct tail *t);

#endif
