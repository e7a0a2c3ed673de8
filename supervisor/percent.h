/*
 * percent.h - %XX in paths and queries.
 */
#ifndef SUPERVISOR_PERCENT_H
#define SUPERVISOR_PERCENT_H

#include <stddef.h>

/* Decoded copy: owned, or NULL where an escape is broken or a NUL. */
char *percent_decode(const char *s, size_t n);

#endif
