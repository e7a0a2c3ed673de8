/*
 * plan_env.h - the environment of an agent, and of the check of its work.  Both are made from
 * nothing: no variable of the supervisor's is in them but those that root exposes and the harness
 * names.
 */
#ifndef SUPERVISOR_PLAN_ENV_H
#define SUPERVISOR_PLAN_ENV_H

#include "drivers/driver.h"
#include "policy/harness.h"
#include "policy/policy.h"

#include <stdbool.h>

/* Lists of "K=V", owned: list_free.  commits: it is to commit what it changes. */
char **plan_env(const struct harness *h, const struct agent *a, const struct policy *p,
        const struct driver_command *c, bool commits);
char **plan_env_verify(const struct harness *h, const struct policy *p); /* NULL: no check */

#endif
