/*
 * params.h - the parameters of a run: from the JSON object the store keeps to
 * lists of names and values, and into texts.
 */
#ifndef SUPERVISOR_PARAMS_H
#define SUPERVISOR_PARAMS_H

#include "base/err.h"
#include "policy/harness_params.h"

#include <stddef.h>

/* As a run is given them; what its harness, its pipeline and that one's own words may add. */
enum { PARAMS_LIMIT = 64, PARAMS_ADDED = 2 * HARNESS_PARAMS_MAX + 3 };

struct params {
	char **names, **values; /* owned; n of each */
	size_t n;
};

/* NULL text: none. */
MUST_USE int params_parse(const char *json, struct params *ret, struct err *e);
void params_done(struct params *p);
/* The JSON object (owned), or NULL when n is 0. */
char *params_write(const char *const *names, const char *const *values, size_t n);

/* The same of a run of the harness, which takes them (harness_params_check): with the values of
 * those that it was not given. */
char *params_settle(
        const struct harness *h, const char *const *names, const char *const *values, size_t n);

/* text with each {{name}} of a known name replaced (owned); others stay as they are.  NULL: longer
 * than LIMIT_PROMPT. */
char *params_fill(const struct params *p, const char *text, size_t n, size_t *ret_len);

#endif
