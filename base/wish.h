/*
 * wish.h - what a pack of harnesses may have beyond its jail, as root has granted it.
 *
 * A wish is KIND:VALUE, as in "policy:open"; a grant is the same, or KIND:* for all of its kind;
 * but of secrets each is granted by its name.
 * The supervisor decides by it at each load (policy/wishes.h), abctl shows and records it.
 */
#ifndef BASE_WISH_H
#define BASE_WISH_H

#include <dirent.h>
#include <stdbool.h>

bool wish_covered(const char *wish, const char *grant);
/* For scandir: not what is being installed or removed, whose name begins with a dot. */
int wish_pack_entry(const struct dirent *d);

#endif
