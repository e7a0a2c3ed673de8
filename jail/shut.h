/*
 * shut.h - a child that works on what strangers made sees that and nothing else.
 *
 * Called between fork and the work, by root: the process gets a mount namespace of
 * its own, in which the host's files are not.  What it holds open stays open; a
 * directory among that has to be a mount of its own, or its ".." leads out.
 */
#ifndef JAIL_SHUT_H
#define JAIL_SHUT_H

#include "base/err.h"

/* The detached mount `tree` becomes the root, and nothing else is mounted; `at`: any directory. */
MUST_USE int shut_tree(int tree, const char *at, struct err *e);
/* The host's programs and libraries, read-only, and /proc/self: enough to execute one of them. */
MUST_USE int shut_programs(struct err *e);

#endif
