#include "policy/prices.h"
#include "base/glob.h"

uint64_t tokens_sum(const struct tokens *t)
{
	return t->input + t->output + t->cached + t->stored;
}

void tokens_add(struct tokens *to, const struct tokens *more)
{
	to->input += more->input;
	to->output += more->output;
	to->cached += more->cached;
	to->stored += more->stored;
}

const struct price *price_find(const struct price *prices, size_t n, const char *model)
{
	for (size_t i = 0; i < n; i++)
		if (glob_match(prices[i].model, model))
			return &prices[i];
	return NULL;
}

static uint64_t times(uint64_t tokens, uint64_t price)
{
	return (tokens < TOKENS_MAX ? tokens : TOKENS_MAX) * price;
}
_Static_assert(4 * TOKENS_MAX * (PRICE_MAX / 1000) < UINT64_MAX / 1000, "four of them fit");

uint64_t price_of(const struct price *p, const struct tokens *t)
{
	uint64_t sum = times(t->input, p->input) + times(t->output, p->output) +
	               times(t->cached, p->cached) + times(t->stored, p->stored);
	return (sum + 999999) / 1000000;
}
