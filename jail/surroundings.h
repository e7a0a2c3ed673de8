/*
 * surroundings.h - can jails be made where agentboxd was started?
 *
 * Before anything else is done: in a container that was not given what it takes, each step
 * would fail with words of its own.  What cannot be done without is tried in a child, all of it,
 * so that all that is missing is told at once, with the words of the container's manager.
 * Layers, which a policy may do without, are jail/host.h's.
 */
#ifndef JAIL_SURROUNDINGS_H
#define JAIL_SURROUNDINGS_H

#include "base/buf.h"
#include "base/err.h"

enum { SURROUNDINGS_KIND = 32 };

/* Whose container this is, "docker", or "" where it is none that is known. */
void surroundings_kind(const char *root, char ret[SURROUNDINGS_KIND]);
/* 0, or -ENOTSUP: a line in `missing` for each that is, and the remedy in *e. */
MUST_USE int surroundings_check(struct buf *missing, struct err *e);

#endif
