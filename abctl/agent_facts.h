/*
 * agent_facts.h - what agent.yaml says about installing an agent, by way of agentbox-policyc.
 */
#ifndef ABCTL_AGENT_FACTS_H
#define ABCTL_AGENT_FACTS_H

#include <stddef.h>

struct agent_take {
	const char *from, *to; /* path in the package, "." all of it; path below /opt/agent */
};

enum { AGENT_TAKES = 64 };
struct agent_facts {
	char *text; /* owned: what the rest points into */
	const char *name, *version;
	const char *package, *integrity;   /* NULL: it does not come from npm */
	const char *node, *node_integrity; /* NULL: no Node comes with it */
	const char *unavailable;           /* why it cannot be installed, or NULL */
	struct agent_take takes[AGENT_TAKES];
	size_t ntakes;
};

/* Of the agent `name`, or of `file`, which is to be about that one.  0 or an exit code after having
 * said why. */
int agent_facts_read(const char *name, const char *file, struct agent_facts *ret);
void agent_facts_done(struct agent_facts *f);

#endif
