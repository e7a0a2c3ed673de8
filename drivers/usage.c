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

void usage_put(struct jw *w, const struct driver_usage *u)
{
	jw_int(w, "input", u->input_tokens);
	jw_int(w, "output", u->output_tokens);
	jw_int(w, "cached", u->cached_tokens);
	if (u->cost_usd >= 0)
		jw_num(w, "cost", u->cost_usd);
}

struct driver_usage usage_of(const struct json *left)
{
	return (struct driver_usage){
	        .input_tokens = json_int(left, "input", 0),
	        .output_tokens = json_int(left, "output", 0),
	        .cached_tokens = json_int(left, "cached", 0),
	        .cost_usd = json_num(left, "cost", -1),
	};
}

bool usage_same(const struct driver_usage *a, const struct driver_usage *b)
{
	return a->input_tokens == b->input_tokens && a->output_tokens == b->output_tokens &&
	       a->cached_tokens == b->cached_tokens && a->turns == b->turns &&
	       !(a->cost_usd < b->cost_usd) && !(a->cost_usd > b->cost_usd);
}

static int64_t less(int64_t now, int64_t before)
{
	return now > before ? now - before : 0;
}

void usage_take_off(struct driver_usage *from, const struct driver_usage *before)
{
	bool priced = from->cost_usd >= 0 && before->cost_usd >= 0;
	from->input_tokens = less(from->input_tokens, before->input_tokens);
	from->output_tokens = less(from->output_tokens, before->output_tokens);
	from->cached_tokens = less(from->cached_tokens, before->cached_tokens);
	if (!priced)
		from->cost_usd = -1;
	else
		from->cost_usd -=
		        from->cost_usd < before->cost_usd ? from->cost_usd : before->cost_usd;
}
