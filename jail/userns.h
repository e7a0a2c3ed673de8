/*
 * userns.h - user namespaces held by a descriptor, with nobody living in them.
 *
 * Made by a child that shares our memory, because a namespace's maps can only
 * be written while a process is in it.  Its owner is the first id outside, not
 * root: what the kernel counts for users is then each block's own.
 */
#ifndef JAIL_USERNS_H
#define JAIL_USERNS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* One range: `inside` .. inside + count maps to `outside` ... */
struct userns_map {
	uint32_t inside, outside, count;
};

/* `sealed` writes 0 to the namespace's eight user.max_*_namespaces, so that nothing below it can
 * make another.  outside is never 0 (asserted): host root is in no map.  fd (owned) or -errno. */
MUST_USE int userns_make(
        const struct userns_map *uids, const struct userns_map *gids, bool sealed, struct err *e);

#endif
