/*
 * range.h - the Range header of a request for bytes: one range of them (RFC 9110, 14.1.2).  Pure.
 *
 * Order: range_read, before the size is known; range_of, once it is.
 */
#ifndef SUPERVISOR_RANGE_H
#define SUPERVISOR_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
	bool some; /* one is asked for; else all bytes */
	bool tail; /* the last n; else n from `at` on */
	uint64_t at, n;
};

/* What cannot be read, or is several ranges, asks for all: that may be answered always. */
void range_read(const char *header, struct range *ret);
/* The part of `size` bytes.  false: there is nothing of it (416). */
bool range_of(const struct range *r, uint64_t size, uint64_t *ret_at, uint64_t *ret_n);

#endif
