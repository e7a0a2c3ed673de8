/*
 * lookup.h - a policy by name or by file, with the texts it came from, so that
 * `explain` can say which line decides.
 */
#ifndef POLICY_LOOKUP_H
#define POLICY_LOOKUP_H

#include "policy/policy.h"
#include "policy/yaml.h"

enum { LOOKUP_DOCS = 8 }; /* a chain of `extends`: a file and at most every built-in */

struct lookup {
	struct policy policy;
	struct yaml_doc *docs[LOOKUP_DOCS]; /* owned: the file itself, then what it extends */
	size_t ndocs;
};

/* Returns owned, or NULL with *e: -EINVAL (or -E2BIG) for a text with a fault, else why nothing was
 * read.  `what`: a path (it has a slash or ends in .yaml), else a name of
 * POLICYC_DIR or of a built-in. */
struct lookup *lookup_policy(const char *what, struct err *e);
void lookup_free(struct lookup *l); /* NULL is fine */
static inline void auto_lookup_(struct lookup **l)
{
	lookup_free(*l);
}
#define auto_lookup __attribute__((cleanup(auto_lookup_)))

/* The entry that decides about a dotted key, and its file; NULL: no file says anything. */
const struct yaml_node *lookup_line(
        const struct lookup *l, const char *dotted, const char **ret_file);

#endif
