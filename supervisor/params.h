/*
 * params.h - the parameters of a run, between the JSON object the store keeps
 * and lists of names and values.
 */
#ifndef SUPERVISOR_PARAMS_H
#define SUPERVISOR_PARAMS_H

#include "base/err.h"

#include <stddef.h>

enum { PARAMS_LIMIT = 64 };

struct params {
	char **names, **values; /* owned; n of each */
	size_t n;
};

/* NULL text: none. */
MUST_USE int params_parse(const char *json, struct params *ret, struct err *e);
void params_done(struct params *p);
/* The JSON object (owned), or NULL when n is 0. */
char *params_write(const char *const *names, const char *const *values, size_t n);

#endif
