#include "jail/home.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	TRIES = 200,
	PAUSE_MS = 5
}; /* a second: the kernel's own reclaim is done by then, or never */

bool home_retry(struct home *h, long result, const char *what)
{
	static const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
	if (result >= 0)
		return false;
	if (++h->tries >= TRIES) {
		log_err("cannot return to its own %s (%s): ending", what, strerror(errno));
		abort();
	}
	(void)nanosleep(&pause, NULL);
	return true;
}
