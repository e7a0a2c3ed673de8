/*
 * utf8.h - where text that is UTF-8 may be cut.  Of what is none nothing is promised but that the
 * result is within the bytes, and at most three of them away.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>

/* The largest k <= n that does not cut a character of p in two. */
size_t utf8_floor(const char *p, size_t n);
/* Bytes in front that belong to a character that was cut before them. */
size_t utf8_rest(const char *p, size_t n);

#endif
