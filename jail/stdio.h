/*
 * stdio.h - the three descriptors of a program in a jail: pipes, or a terminal
 * of the jail's own devpts.
 *
 * Never a file of the host: an inherited one could be reopened read-write
 * through /proc/self/fd.  The program's ends belong to its uid, so that opening
 * /dev/stdout works; ours are O_NONBLOCK.
 */
#ifndef JAIL_STDIO_H
#define JAIL_STDIO_H

#include "base/err.h"

#include <stdint.h>

struct stdio {
	int ours[3];   /* stdin write end, stdout and stderr read ends; or the master, -1, -1 */
	int theirs[3]; /* all owned */
};

#define STDIO_NONE                                                                                 \
	{                                                                                          \
		{-1, -1, -1},                                                                      \
		{                                                                                  \
			-1, -1, -1                                                                 \
		}                                                                                  \
	}

/* Ends owned by the host id `uid` and gid. */
MUST_USE int stdio_pipes(uint32_t uid, uint32_t gid, struct stdio *ret, struct err *e);
/* From the jail's devpts mount; the terminal belongs to `uid` and group `tty_gid`. */
MUST_USE int stdio_tty(
        int devpts, uint32_t uid, uint32_t tty_gid, struct stdio *ret, struct err *e);
void stdio_close(int fds[3]); /* harmless twice */

static inline void auto_stdio_(struct stdio *s)
{
	stdio_close(s->ours);
	stdio_close(s->theirs);
}
#define auto_stdio __attribute__((cleanup(auto_stdio_)))

#endif
