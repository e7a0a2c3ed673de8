/*
 * local.h - agentbox-policyc, run as the caller on the caller's own files: lint
 * and explain work without a daemon.
 */
#ifndef ABCTL_LOCAL_H
#define ABCTL_LOCAL_H

/* Runs `agentbox-policyc argv...` (argv[0] is the first argument; NULL-ended) with our stdio.
 * Its exit codes are ours. */
int local_policyc(const char *const *argv);

#endif
