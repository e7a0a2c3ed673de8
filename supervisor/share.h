/*
 * share.h - who of several parties is owed the next slot: weighted fair
 * queueing of slot time.  Pure: time is passed in.
 *
 * A party's `pass` is the slot time it has had for its weight; the clock of
 * its group goes on as fast as a party would that has exactly its share.  Who
 * is furthest behind is next, and what it would have with the slot counts as had,
 * so that a burst is spread at once.  A pass never strays further from the clock than some
 * runs take: nobody saves up, and nobody who was alone for an hour pays for it afterwards.
 */
#ifndef SUPERVISOR_SHARE_H
#define SUPERVISOR_SHARE_H

#include <stdint.h>

/* Of the parties of one group that have jobs. */
struct share_clock {
	double time_ms;       /* slot time for a weight of one */
	double load, weights; /* slots in use; of all parties */
	int64_t at_us;        /* when that was so */
};

struct share {
	double pass_ms, load;
	double expect_ms; /* how long its runs take */
	double weight;
	uint64_t turn; /* when it was served last, as a serial number */
	int64_t at_us;
};

/* It has jobs from now on, or none any more. */
void share_join(struct share *x, struct share_clock *c, int64_t now_us);
void share_quit(struct share *x, struct share_clock *c, int64_t now_us);
void share_weigh(struct share *x, struct share_clock *c, double weight, int64_t now_us);
/* Is x owed the next slot rather than y? */
int share_before(struct share *x, struct share *y, const struct share_clock *c, int64_t now_us);
/* It takes so many slots, or gives them back after so long. */
void share_take(struct share *x, struct share_clock *c, double slots, int64_t now_us);
void share_give(
        struct share *x, struct share_clock *c, double slots, int64_t ran_us, int64_t now_us);

#endif
