/*
 * now.h - what goes on: runs and jails of now, joined by their sessions.
 */
#ifndef ABCTL_NOW_H
#define ABCTL_NOW_H

#include "abctl/verb.h"
#include "base/json.h"

/* {"runs":[...]}: running ones first, then jails of commands, then those that wait; each list as it
 * comes.  quiet_ms: 0, or nothing is said of what fails, also by not answering for so long.  0 or
 * an exit code; *ret is owned. */
MUST_USE int now_look(const struct cli *cli, int quiet_ms, struct json **ret);

#endif
