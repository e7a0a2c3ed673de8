/*
 * control.h - what agentboxd says: policies and secrets, jails that begin and
 * end (proto/egress.h).
 *
 * Policies are copied out of their memfd and checked before a field is
 * believed.  Jails that are alive follow their policy by name when a new set
 * arrives: root's word counts for the next request, not for the next jail.
 */
#ifndef EGRESS_CONTROL_H
#define EGRESS_CONTROL_H

#include "base/err.h"

struct control; /* opaque */
struct services;

/* Watches services->control.  Stops the loop at EGRESS_STOP and when agentboxd is gone. */
struct control *control_new(struct services *s, struct err *e);
void control_free(struct control *c);

#endif
