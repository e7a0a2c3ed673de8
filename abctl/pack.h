/*
 * pack.h - `abctl pack`: harnesses from elsewhere, in DIR/packs below a directory of root's
 * harnesses.  The tree of each has a record (agent_tree.h, INSTALLED), its lock: where it came
 * from, the digest of its files and what root granted it.
 */
#ifndef ABCTL_PACK_H
#define ABCTL_PACK_H

#include "abctl/agent_tree.h"
#include "abctl/verb.h"

struct pack_args {
	const char *harnesses; /* --harnesses: root's directory of them */
	const char *name;      /* --name */
	const char *policy;    /* --policy: of the jail that fetches */
	const char *registry;  /* --registry: npm's */
	struct opt_list grants;
};

/* Exit codes, after having said what came of it.  `name` may be NULL: all. */
int pack_add(const struct cli *cli, const struct pack_args *a, const char *source);
int pack_update(const struct cli *cli, const struct pack_args *a, const char *name);
int pack_ls(const struct cli *cli, const struct pack_args *a);
int pack_show(const struct cli *cli, const struct pack_args *a, const char *name);
int pack_verify(const struct cli *cli, const struct pack_args *a, const char *name);
int pack_rm(const struct cli *cli, const struct pack_args *a, const char *name);

/* ---- between these ---- */

/* To change them: locked.  To look: not, and where there is no directory there are none. */
int pack_open(const struct pack_args *a, bool change, struct agent_trees *ret);
/* Makes daemons look again. */
void pack_tell(const struct pack_args *a);
/* Calls fn for each, also when one fails.  The first exit code that is not 0. */
typedef int pack_fn(void *ctx, const char *name);
int pack_each(const struct agent_trees *t, pack_fn *fn, void *ctx);

#endif
