/*
 * pack_facts.h - what a pack is and asks for, by way of agentbox-policyc.
 */
#ifndef ABCTL_PACK_FACTS_H
#define ABCTL_PACK_FACTS_H

#include <stdbool.h>
#include <stddef.h>

enum { PACK_LINES = 512 };

struct pack_harness {
	const char *name, *file;
};
struct pack_wish {
	const char *at, *wish; /* FILE:LINE, KIND:VALUE */
};

struct pack_facts {
	char *text; /* owned: what the rest points into */
	const char *name, *version, *description, *dir;
	struct pack_harness harnesses[PACK_LINES];
	size_t nharnesses;
	struct pack_wish wishes[PACK_LINES];
	size_t nwishes;
};

/* Of the tree `tree`; `name` may be NULL, `dflt` is taken where the manifest says none.  0, or an
 * exit code after having said why. */
int pack_facts_read(int tree, const char *name, const char *dflt, struct pack_facts *ret);
void pack_facts_done(struct pack_facts *f);

#endif
