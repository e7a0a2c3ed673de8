/*
 * given.h - secrets that enter a jail, as variables of a run's agent and of nobody
 * else.
 *
 * agentboxd alone brings them together with a program: into a memfd that PID 1 of the
 * jail reads, between the request and the exec.  The supervisor, which asked for
 * the program, gets a veil to find them by in what comes out.
 */
#ifndef JAIL_GIVEN_H
#define JAIL_GIVEN_H

#include "base/err.h"
#include "base/veil.h"
#include "policy/outlets.h"
#include "policy/policy.h"

/* Of `secrets` (secrets.h) those that the policy gives and the run asks for: a memfd (owned) for
 * PID 1, and their veil.  -ENOENT: one has no value; -EKEYREJECTED: one could not be kept out of
 * output; -EACCES: there are none. */
MUST_USE int given_open(int secrets, const struct policy *p, const struct outlets *o,
        struct veil *ret, struct err *e);

#endif
