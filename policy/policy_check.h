/*
 * policy_check.h - the parts of policy_set_check that are of use alone.
 *
 * Everything here answers one question: may a root process rely on these bytes?
 */
#ifndef POLICY_POLICY_CHECK_H
#define POLICY_POLICY_CHECK_H

#include "policy/policy.h"

/* 0, or -EBADMSG: loads stay within struct seccomp_data, jumps go forward and land in the program,
 * the last instruction returns (so each path does), every action is one that the project uses. */
MUST_USE int bpf_check(const struct sock_filter *insns, size_t n, struct err *e);

/* One policy, texts and numbers and filter. */
MUST_USE int policy_check(const struct policy *p, struct err *e);
MUST_USE int daemon_config_check(const struct daemon_config *c, struct err *e);

/* May a directory of the host be shown to jails / a place in the jail be covered?  NULL, or why
 * not. */
const char *mount_source_refusal(const char *path);
const char *mount_target_refusal(const char *path);

#endif
