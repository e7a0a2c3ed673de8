#include "supervisor/share.h"

enum {
	STRAY = 8,       /* so many runs a pass may be from the clock: a few turns of everybody */
	SMOOTH = 8,      /* of a duration an eighth counts at once */
	EXPECT_MS = 1000 /* before anything is known: runs take seconds */
};

static void advance(struct share_clock *c, int64_t now_us)
{
	if (c->weights > 0 && now_us > c->at_us)
		c->time_ms += c->load * (double)(now_us - c->at_us) / 1000 / c->weights;
	c->at_us = now_us;
}

static void accrue(struct share *x, const struct share_clock *c, int64_t now_us)
{
	if (now_us > x->at_us)
		x->pass_ms += x->load * (double)(now_us - x->at_us) / 1000 / x->weight;
	x->at_us = now_us;
	double most = STRAY * x->expect_ms / x->weight;
	if (x->pass_ms > c->time_ms + most)
		x->pass_ms = c->time_ms + most;
	if (x->pass_ms < c->time_ms - most)
		x->pass_ms = c->time_ms - most;
}

void share_join(struct share *x, struct share_clock *c, int64_t now_us)
{
	advance(c, now_us);
	x->pass_ms = c->time_ms;
	x->at_us = now_us;
	if (x->expect_ms <= 0)
		x->expect_ms = EXPECT_MS;
	c->weights += x->weight;
}

void share_quit(struct share *x, struct share_clock *c, int64_t now_us)
{
	advance(c, now_us);
	c->weights -= x->weight;
}

void share_weigh(struct share *x, struct share_clock *c, double weight, int64_t now_us)
{
	advance(c, now_us);
	accrue(x, c, now_us);
	c->weights += weight - x->weight;
	x->weight = weight;
}

static double with_one_more(struct share *x, const struct share_clock *c, int64_t now_us)
{
	accrue(x, c, now_us);
	return x->pass_ms + (x->load + 1) * x->expect_ms / x->weight;
}

int share_before(struct share *x, struct share *y, const struct share_clock *c, int64_t now_us)
{
	struct share_clock at = *c;
	advance(&at, now_us);
	double a = with_one_more(x, &at, now_us), b = with_one_more(y, &at, now_us);
	return a < b || (a == b && x->turn < y->turn); /* as after a burst: nothing is rounded */
}

void share_take(struct share *x, struct share_clock *c, double slots, int64_t now_us)
{
	advance(c, now_us);
	accrue(x, c, now_us);
	x->load += slots;
	c->load += slots;
}

void share_give(
        struct share *x, struct share_clock *c, double slots, int64_t ran_us, int64_t now_us)
{
	advance(c, now_us);
	accrue(x, c, now_us);
	x->load -= slots;
	c->load -= slots;
	x->expect_ms += ((double)ran_us / 1000 - x->expect_ms) / SMOOTH;
	if (x->expect_ms < 1)
		x->expect_ms = 1;
}
