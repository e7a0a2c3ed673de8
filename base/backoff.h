/*
 * backoff.h - how long to wait before something that failed is tried again.
 */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include <stdint.h>
#include <sys/random.h>

/* For the jitter: where the kernel has none, any number does. */
static inline uint32_t backoff_random(void)
{
	uint32_t n = 0;
	(void)!getrandom(&n, sizeof(n), 0);
	return n;
}

/* `first` after the first failure, then twice as long each time, up to `most`; less up to half at
 * random, so that what failed together does not come again together. */
static inline uint64_t backoff_ms(uint64_t first, uint64_t most, unsigned failures, uint32_t random)
{
	uint64_t pause = first;
	for (unsigned i = 1; i < failures && pause && pause < most; i++)
		pause *= 2;
	if (pause > most)
		pause = most;
	return pause - random % (pause / 2 + 1);
}

#endif
