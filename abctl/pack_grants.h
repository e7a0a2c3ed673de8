/*
 * pack_grants.h - what root lets the harnesses of a pack have, against what they ask for.
 */
#ifndef ABCTL_PACK_GRANTS_H
#define ABCTL_PACK_GRANTS_H

#include "abctl/opts.h"
#include "abctl/pack_facts.h"
#include "base/json.h"

struct pack_grants {
	char **list; /* owned, NULL-terminated, sorted, none twice */
};

/* Of those given ("A,B" is two) and those of `old`, a record or NULL, what the pack asks for.  0,
 * or an exit code after having said what is missing and how it is granted, or what nothing asks
 * for.
 */
int pack_grants_make(const struct opt_list *given, const struct json *old,
        const struct pack_facts *facts, struct pack_grants *ret);
bool pack_grants_same(const struct pack_grants *g, const struct json *list);
void pack_grants_done(struct pack_grants *g);

#endif
