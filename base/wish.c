#include "base/wish.h"

#include "base/id.h"

#include <string.h>

bool wish_covered(const char *wish, const char *grant)
{
	size_t kind = strcspn(wish, ":");
	/* secrets:* is a wish of its own, for what is used outside of the jail; one that is named
	 * may come into it. */
	bool named_alone = strncmp(wish, "secrets:", strlen("secrets:")) == 0;
	return strcmp(grant, wish) == 0 ||
	       (!named_alone && strncmp(grant, wish, kind) == 0 && strcmp(grant + kind, ":*") == 0);
}

int wish_pack_entry(const struct dirent *d)
{
	return name_valid(d->d_name) && !strchr(d->d_name, '.');
}
