/*
 * orders.h - what agentboxd tells the supervisor as a whole: begin with this,
 * stop, make room for another, and that it is gone.
 */
#ifndef SUPERVISOR_ORDERS_H
#define SUPERVISOR_ORDERS_H

#include "supervisor/jails.h"

extern const struct jails_calls orders_calls;

#endif
