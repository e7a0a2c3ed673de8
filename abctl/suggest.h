/*
 * suggest.h - `abctl policy suggest`: the refusals of a run or a session, given
 * to agentbox-policyc, which makes a policy of them (policy/suggest.h).
 */
#ifndef ABCTL_SUGGEST_H
#define ABCTL_SUGGEST_H

#include "abctl/verb.h"

/* `of`: a run's id, a session's, or USER/GOAL.  The exit code. */
int suggest_policy(const struct cli *cli, const char *of);

#endif
