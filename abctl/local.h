/*
 * local.h - agentbox-policyc, run as the caller on the caller's own files: lint
 * and explain work without a daemon.
 */
#ifndef ABCTL_LOCAL_H
#define ABCTL_LOCAL_H

#include <stdbool.h>

#include <limits.h>

struct cli;

/* Runs `agentbox-policyc lint KIND FILE...` with our stdio.  Its exit codes are ours.  With --json
 * its lines, split where they say where and what, are one object:
 * {"ok","messages":[{"level","file"?,"line"?,"text"}]}. */
int local_lint(const struct cli *cli, const char *kind, int argc, char **argv);
/* The same with `agentbox-policyc argv...` (argv[0] is the first argument; NULL-ended); the object
 * is {"answer","reasons":[...]}, the first line and what follows it, or
 * {"yaml"} where nothing is asked and the whole policy is the answer. */
int local_explain(const struct cli *cli, const char *const *argv, bool asked);
/* Its stdout into *ret (owned); its exit code, or ours when it could not be read. */
int local_capture(const char *const *argv, char **ret);
/* The first of `places`, relative to the directory that abctl is in and NULL-ended, below which
 * `name` can be opened as `mode` of access(2) says.  0 or -errno. */
int local_find(const char *const *places, const char *name, int mode, char path[PATH_MAX]);

#endif
