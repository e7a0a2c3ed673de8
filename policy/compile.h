/*
 * compile.h - the verb `compile` of agentbox-policyc: root's files to one policy set.
 *
 * The order is the point: privileges go first, then everything is read, then
 * the filter is entered, and only then is a byte looked at.
 */
#ifndef POLICY_COMPILE_H
#define POLICY_COMPILE_H

/* argv after the verb.  Returns enum policyc_exit. */
int compile_main(int argc, char **argv);

#endif
