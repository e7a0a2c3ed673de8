/*
 * lint.h - the verb `lint` of agentbox-policyc: files of any kind, checked
 * without a daemon; and the key tables for the manual.
 */
#ifndef POLICY_LINT_H
#define POLICY_LINT_H

/* argv after the verb.  Return enum policyc_exit. */
int lint_main(int argc, char **argv);
int keys_main(int argc, char **argv);
int syscalls_main(int argc, char **argv);
int list_main(int argc, char **argv);

#endif
