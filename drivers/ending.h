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
};

void ending_error_line(struct ending *d, const char *p, size_t n);
/* Does the line begin with one of these (NULL-terminated, or NULL)?  What is said at each start
 * explains no end. */
bool ending_is_noise(const char *const *noise, const char *p, size_t n);
/* Returns owned: "exited with code 3: no such file", "was killed by signal 9". */
char *ending_text(const struct ending *d, const struct driver_exit *x);

#endif
