/*
 * home.h - coming back from where agentboxd is only for a moment.
 *
 * It enters a new namespace or takes another id, makes something there, and returns.  The kernel
 * may lack memory for the way back, so that is tried for a while; a process that cannot return
 * ends, because whatever it did afterwards it would do inside a jail or as somebody else.
 */
#ifndef JAIL_HOME_H
#define JAIL_HOME_H

#include <stdbool.h>

struct home {
	unsigned tries; /* so far; starts at 0 */
};

/* For the condition of a loop around a call with errno: false once it has worked.  Does not return
 * when there is no way back to `what`. */
bool home_retry(struct home *h, long result, const char *what);

#endif
