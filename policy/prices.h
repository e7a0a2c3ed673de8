/*
 * prices.h - what tokens cost.
 *
 * A table of model globs, the first that matches counts.  Money is in millionths of a US dollar
 * everywhere, prices are that for a million tokens.  Pure.
 */
#ifndef POLICY_PRICES_H
#define POLICY_PRICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MODEL_MAX = 64,
	POLICY_PRICES = 128,
};
/* More than any answer has: what says so is cut to it, and no sum of prices overflows. */
#define TOKENS_MAX 100000000ull
/* Of one price: ten thousand dollars for a million tokens. */
#define PRICE_MAX 10000000000ull

/* Each token is in one of these. */
struct tokens {
	uint64_t input; /* read anew */
	uint64_t output;
	uint64_t cached; /* read from a cache */
	uint64_t stored; /* read anew and put into a cache */
};

struct price {
	char model[MODEL_MAX]; /* glob */
	uint64_t input, output, cached, stored;
};

uint64_t tokens_sum(const struct tokens *t);
void tokens_add(struct tokens *to, const struct tokens *more);
/* The first that matches, or NULL: the price is not known. */
const struct price *price_find(const struct price *prices, size_t n, const char *model);
/* Rounded up. */
uint64_t price_of(const struct price *p, const struct tokens *t);

#endif
