/*
 * pack_tree.h - the files of a pack while it is made: copied from a directory, and looked at.
 */
#ifndef ABCTL_PACK_TREE_H
#define ABCTL_PACK_TREE_H

#include "abctl/agent_tree.h"

enum { PACK_FILES_MAX = 2000, PACK_DEPTH_MAX = 16 };
#define PACK_BYTES_MAX (UINT64_C(16) << 20)

/* The directory `from` into `tree`, but for .git; refuses what is neither file nor directory. */
MUST_USE int pack_tree_copy(const char *from, int tree, struct err *e);
/* Where all of it is below one directory, that is the tree.  The new fd (owned), or -errno; `tree`
 * is closed. */
MUST_USE int pack_tree_unwrap(struct agent_trees *t, int tree, struct err *e);
/* Names that some file systems take for one, and trees that are too deep. */
MUST_USE int pack_tree_check(int tree, struct err *e);

#endif
