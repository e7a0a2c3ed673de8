/*
 * agent_probe.h - `abctl agent probe`: does an agent start in a jail, and is it the version that is
 * pinned?
 */
#ifndef ABCTL_AGENT_PROBE_H
#define ABCTL_AGENT_PROBE_H

#include "abctl/verb.h"
#include "base/buf.h"
#include "base/json.h"

/* Path of one agent in the API; what is there (owned), or an exit code after having said why. */
void agent_path(struct buf *to, const char *name);
MUST_USE int agent_get(const struct cli *cli, const char *name, struct json **ret);

/* 0, or EXIT_FAILED with the reason on stdout; with --json an object {"agent","ok","reason"?,
 * "version"?,"installed"?,"said"?}.  Other codes: it could not be tried. */
int agent_probe(const struct cli *cli, const char *policy, const char *name);

#endif
