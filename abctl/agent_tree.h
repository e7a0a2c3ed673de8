/*
 * agent_tree.h - the directory of installed agents: one finished tree a name, each with VERSION and
 * a record, and what is in the making or still in use below names with a dot.
 *
 *	DIR/NAME/...		what a jail sees as /opt/agent
 *	DIR/NAME/INSTALLED	the record: JSON, with the tree's digest
 *	DIR/.install-XXXXXX/	in the making; gone with who makes it
 *	DIR/.old-NAME-XXXXXX/	replaced, while a jail shows it
 *	DIR/.lock		held by who changes anything
 */
#ifndef ABCTL_AGENT_TREE_H
#define ABCTL_AGENT_TREE_H

#include "base/digest.h"
#include "base/err.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

struct agent_trees {
	const char *what; /* literal: of what these are, "agent" */
	char *dir;        /* owned */
	int fd, lock;     /* owned */
	char *work;       /* owned: name of what is in the making, or NULL */
	int work_fd;      /* owned: that, or -1 */
};

/* Opens and locks DIR, which must be root's alone, waiting for who has it, and clears what a killed
 * one left. */
MUST_USE int agent_trees_open(
        struct agent_trees *t, const char *what, const char *dir, struct err *e);
/* With what is in the making, if it has not taken its place. */
void agent_trees_close(struct agent_trees *t);

/* An empty directory for a new tree, of ID_UNPACK and behind one of root's.  fd (owned) or -errno.
 */
MUST_USE int agent_trees_begin(struct agent_trees *t, struct err *e);

struct agent_sum {
	char digest[DIGEST_INTEGRITY]; /* of all paths, executable bits and bytes but the record's
	                                */
	int64_t files, bytes;
};
/* Makes the tree root's, read-only for all others, and sums it up; refuses what is neither file nor
 * directory. */
MUST_USE int agent_tree_seal(int tree, struct agent_sum *ret, struct err *e);
/* The record of DIR/NAME (owned), or NULL; with `intact` only where the tree still is what it says.
 */
struct json *agent_trees_record(const struct agent_trees *t, const char *name, bool intact);

MUST_USE int agent_tree_write(int tree, const char *name, const struct buf *text, struct err *e);
/* Takes its place as DIR/NAME; what was there is kept while it is in use. */
MUST_USE int agent_trees_place(struct agent_trees *t, const char *name, struct err *e);
/* DIR/NAME out of the way.  -ENOENT: there is none. */
MUST_USE int agent_trees_retire(struct agent_trees *t, const char *name, struct err *e);
/* Removes what was replaced and is not used any more.  How many are still used. */
int agent_trees_sweep(const struct agent_trees *t);

#endif
