/*
 * scan.h - values found in JSON text, without a tree and without memory.
 *
 * For programs in jails, which link no parser, and for lines of which little
 * is wanted.  scan_value checks the whole text once; the other functions take
 * what it has accepted and give places in the same text (borrowed: as long as
 * that).  Names of members are compared as they are written.
 */
#ifndef BASE_SCAN_H
#define BASE_SCAN_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCAN_DEPTH = 128 }; /* arrays and objects inside each other */

struct span {
	const char *p; /* borrowed */
	size_t n;
};

/* The one value that the text is, without white space around it.  false: it is no JSON, or too
 * deep. */
bool scan_value(struct span text, struct span *ret);
/* The first member of that name; false: there is none, or it is no object. */
bool scan_member(struct span object, const char *name, struct span *ret);
/* The next element of an array; begin with *at = {0}.  false: there is none, or it is no array. */
bool scan_next(struct span array, struct span *at);
/* A string's bytes, appended; half of a surrogate pair becomes U+FFFD.  false: it is no string, or
 * the buffer is full. */
bool scan_text(struct span value, struct buf *to);
/* Likewise of that member of an object that is given without its braces. */
bool scan_members_text(const char *members, size_t n, const char *name, struct buf *to);
/* false: it is no number without sign, point and exponent, or too large. */
bool scan_number(struct span value, uint64_t *ret);

#endif
