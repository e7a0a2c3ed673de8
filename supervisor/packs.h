/*
 * packs.h - harnesses that came from elsewhere: those of DIR/packs/PACK, where DIR is a directory
 * of root's harnesses and PACK/INSTALLED the record that `abctl pack add` made.
 *
 * The record says what root granted.  A harness that asks for more is refused, so that no change of
 * its file widens what it may have; without a readable record all of the pack's are.
 */
#ifndef SUPERVISOR_PACKS_H
#define SUPERVISOR_PACKS_H

#include "base/err.h"
#include "policy/harness.h"

#include <time.h>

struct pack {
	char *name;    /* owned */
	char *dir;     /* owned: of its harnesses, "packs/PACK/..." below the root's directory */
	char **grants; /* owned, or NULL: none */
	struct timespec time; /* of the record */
	char *error;          /* owned: why none of it may be used, or NULL */
};

/* Calls fn for each pack below the directory, in the order of their names. */
typedef void packs_fn(void *ctx, const struct pack *p);
void packs_each(int dir, packs_fn *fn, void *ctx);

/* 0, or -EACCES. */
MUST_USE int pack_allows(const struct pack *p, const struct harness *h, struct err *e);

#endif
