/*
 * handover.h - what one agentboxd leaves to the next, over an exec in the same process.
 *
 * Only what the next one cannot make by itself: descriptors with what the kernel
 * keeps behind them, and what was counted and promised.  Everything else
 * (policies, probes, the pool, templates) it makes anew.  What is carried is one
 * table of members in handover.c, which writer and reader share.  The bytes name
 * each member and its size, so that a program that would understand one
 * of them differently refuses the whole instead of guessing.
 *
 * The descriptors keep their numbers: they are only kept open over the exec.
 */
#ifndef JAIL_HANDOVER_H
#define JAIL_HANDOVER_H

#include "base/err.h"

#include <stdbool.h>

struct daemon;

/* ---- before the exec ---- */

/* A sealed memfd (owned), or -errno. */
MUST_USE int handover_write(const struct daemon *d, struct err *e);
/* Every descriptor that is carried stays open over an exec, or does not. */
void handover_keep(const struct daemon *d, bool keep);

/* ---- after it ---- */

/* Whether this program understands all of it; nothing is taken. */
MUST_USE int handover_check(int memfd, struct err *e);
/* Into a blank `d` whose poller is there: members, and jails in their table.  What is carried of
 * services is in place, but not watched yet. */
MUST_USE int handover_read(int memfd, struct daemon *d, struct err *e);

#endif
