#include "drivers/usage.h"

int64_t usage_tokens(const struct json *j, const char *key)
{
	int64_t n = json_int(j, key, 0);
	return n < 0 ? 0 : n > 1000000000000 ? 1000000000000 : n;
}

void usage_add(struct driver_usage *to, const struct driver_usage *more)
{
	to->input_tokens += more->input_tokens;
	to->output_tokens += more->output_tokens;
	to->cached_tokens += more->cached_tokens;
	to->turns += more->turns;
	to->cost_usd = to->cost_usd < 0 || more->cost_usd < 0 ? -1 : to->cost_usd + more->cost_usd;
}

bool usage_same(const struct driver_usage *a, const struct driver_usage *b)
{
	return a->input_tokens == b->input_tokens && a->output_tokens == b->output_tokens &&
	       a->cached_tokens == b->cached_tokens && a->turns == b->turns &&
	       !(a->cost_usd < b->cost_usd) && !(a->cost_usd > b->cost_usd);
}
