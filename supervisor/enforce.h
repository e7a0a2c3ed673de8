/*
 * enforce.h - holds a run to what its agent cannot be told: the limit of turns, the
 * tools it may use and may not.
 *
 * By what the driver's events say, after the fact: an agent is not kept from what
 * it does, its run is ended when it is seen.  What an agent does not tell is not
 * seen.  Pure: the caller judges.
 */
#ifndef SUPERVISOR_ENFORCE_H
#define SUPERVISOR_ENFORCE_H

#include "drivers/event.h"
#include "policy/harness.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Turns by the events, for agents that do not tell of them.  Zeroed at the start. */
struct enforce {
	bool within; /* the model's answer that is being told has begun */
	int64_t turns;
};

/* A turn is an answer of the model: it begins with the first thing that the agent itself (not one
 * that it has started) says, thinks or calls, at the start and after a result or a message of the
 * user.  The number of turns begun. */
int64_t enforce_turn(struct enforce *k, enum event_type t, const char *members, size_t n);

/* NULL, or why a tool.call of these members breaks the rules of the harness that are bits of
 * `enforced` (enum ability); owned. */
char *enforce_call(const struct harness *h, uint32_t enforced, const char *members, size_t n);

#endif
