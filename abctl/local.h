/*
 * local.h - agentbox-policyc, run as the caller on the caller's own files: lint
 * and explain work without a daemon.
 */
#ifndef ABCTL_LOCAL_H
#define ABCTL_LOCAL_H

#include <stdbool.h>

struct cli;

/* Runs `agentbox-policyc argv...` (argv[0] is the first argument; NULL-ended) with our stdio.  Its
 * exit codes are ours.  With --json its lines, split where they say where and what, are one object:
 * {"ok","messages":[{"level","file"?,"line"?,"text"}]}. */
int local_lint(const struct cli *cli, const char *const *argv);
/* The same; the object is {"answer","reasons":[...]}, the first line and what follows it, or
 * {"yaml"} where nothing is asked and the whole policy is the answer. */
int local_explain(const struct cli *cli, const char *const *argv, bool asked);

#endif
