/*
 * explain.h - the verbs `explain` and `show` of agentbox-policyc: what a policy
 * would decide, and which line of which file says so.
 */
#ifndef POLICY_EXPLAIN_H
#define POLICY_EXPLAIN_H

/* argv after the verb.  Return enum policyc_exit. */
int explain_main(int argc, char **argv);
int show_main(int argc, char **argv);

#endif
