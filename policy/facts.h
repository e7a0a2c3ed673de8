/*
 * facts.h - the verb `facts` of agentbox-policyc: what an agent.yaml says about installing it, for
 * `abctl agent install`, which reads no YAML.
 *
 * A line a fact, "KEY VALUE" or "take FROM TO"; no value but the last of a line has a blank in it.
 */
#ifndef POLICY_FACTS_H
#define POLICY_FACTS_H

/* argv after the verb.  Returns enum policyc_exit. */
int facts_main(int argc, char **argv);

#endif
