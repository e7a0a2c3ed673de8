/*
 * orders.h - what agentboxd tells the supervisor as a whole: begin with this,
 * stop, make room for another, and that it is gone; and what it asks of parts below.
 */
#ifndef SUPERVISOR_ORDERS_H
#define SUPERVISOR_ORDERS_H

#include "supervisor/jails.h"
#include "supervisor/space.h"

struct harness;

extern const struct jails_calls orders_calls;
extern const struct space_calls orders_space; /* ctx is the daemon */

/* harnesses_check_fn: could a run of it begin?  ctx: the daemon. */
int orders_check_harness(void *ctx, struct harness *h, struct err *e);

#endif
