/*
 * usage.h - sums of tokens and money.
 */
#ifndef DRIVERS_USAGE_H
#define DRIVERS_USAGE_H

#include "base/json.h"
#include "drivers/driver.h"

/* A number of tokens, which is what a hostile agent says it is: bounded, so that sums cannot
 * overflow. */
int64_t usage_tokens(const struct json *j, const char *key);
/* A cost that is not known makes the sum's unknown. */
void usage_add(struct driver_usage *to, const struct driver_usage *more);
/* What of the sums came after `before`; money is not known where either sum is not. */
void usage_take_off(struct driver_usage *from, const struct driver_usage *before);
/* Sums that a driver leaves for the next run of its process, as members; no cost: not known. */
void usage_put(struct jw *w, const struct driver_usage *u);
struct driver_usage usage_of(const struct json *left);
bool usage_same(const struct driver_usage *a, const struct driver_usage *b);

#endif
