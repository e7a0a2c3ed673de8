/*
 * clock.h - the two clocks: monotonic for durations and deadlines, wall for records.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

int64_t clock_mono_ms(void);
int64_t clock_mono_us(void);
int64_t clock_wall_ms(void); /* since 1970 UTC */

enum { CLOCK_TEXT_MAX = 32 };
/* RFC 3339 in UTC with milliseconds: 2026-11-29T20:56:48.769Z */
void clock_rfc3339(int64_t wall_ms, char out[CLOCK_TEXT_MAX]);
/* Back again, of just that form; -1 for anything else. */
int64_t clock_from_rfc3339(const char *text, size_t n);

#endif
