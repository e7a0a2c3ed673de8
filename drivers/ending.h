/*
 * ending.h - how a process ended, as a sentence.
 *
 * The last line of stderr often says why; it is kept, cut to fit, and quoted.
 */
#ifndef DRIVERS_ENDING_H
#define DRIVERS_ENDING_H

#include "drivers/driver.h"

#include <stdbool.h>
#include <stddef.h>

struct ending {
	char last[512]; /* last line of stderr that was not blank, or "" */
	bool kept;      /* it is a line "Error: ..." */
};

void ending_error_line(struct ending *d, const char *p, size_t n);
/* The same of agents that print advice after the reason: the first line "Error: ..." is kept, and
 * a line that begins with one of `noise` (NULL-terminated, or NULL) explains no end. */
void ending_reason_line(struct ending *d, const char *const *noise, const char *p, size_t n);
/* Returns owned: "exited with code 3: no such file", "was killed by signal 9". */
char *ending_text(const struct ending *d, const struct driver_exit *x);

#endif
