/*
 * units.h - numbers as people write them: 2G, 200k, 1.5, 500ms.
 *
 * Each takes the whole text or fails with -EINVAL (not such a number) or
 * -ERANGE (does not fit 64 bits); *ret is written on success only.
 */
#ifndef POLICY_UNITS_H
#define POLICY_UNITS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

MUST_USE int units_bytes(const char *text, uint64_t *ret); /* 512, 4K, 512M, 1.5G, 2TiB: 1024s */
MUST_USE int units_count(const char *text, uint64_t *ret); /* 512, 200k, 2M: 1000s */
MUST_USE int units_milli(const char *text, uint64_t *ret); /* 2, 1.5: thousandths */
/* 500ms, 30s, 10m, 2h, 1d: milliseconds.  A bare number has no unit and is refused. */
MUST_USE int units_time_ms(const char *text, uint64_t *ret);
MUST_USE int units_plain(const char *text, uint64_t *ret); /* digits */
MUST_USE int units_real(const char *text, double *ret);    /* 2, 0.5; not negative, at most 1e12 */

enum { UNITS_TEXT_MAX = 32 };
/* The shortest exact writing: 4G, 512M, 1000 ... */
void units_print_bytes(uint64_t value, char out[UNITS_TEXT_MAX]);
void units_print_milli(uint64_t value, char out[UNITS_TEXT_MAX]);
void units_print_time_ms(uint64_t value, char out[UNITS_TEXT_MAX]);

#endif
