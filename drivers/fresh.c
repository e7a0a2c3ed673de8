#include "drivers/fresh.h"
#include "base/mem.h"

#include <stdlib.h>

/* FNV-1a.  Who looks for two ids of one hash has the second refused, and no more. */
static uint64_t hash_of(const char *id)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (; *id; id++)
		h = (h ^ (unsigned char)*id) * 0x100000001b3u;
	return h ? h : 1;
}

/* false: it is there already. */
static bool put(uint64_t *slots, size_t room, uint64_t h)
{
	size_t i = h & (room - 1);
	while (slots[i] && slots[i] != h)
		i = (i + 1) & (room - 1);
	bool added = !slots[i];
	slots[i] = h;
	return added;
}

/* At most half full, so that a search is short. */
static void grow(struct fresh *f)
{
	size_t room = f->room ? 2 * f->room : 64;
	uint64_t *slots = xcalloc(room, sizeof(*slots));
	for (size_t i = 0; i < f->room; i++)
		if (f->slots[i])
			(void)put(slots, room, f->slots[i]); /* all differ */
	free(f->slots);
	f->slots = slots;
	f->room = room;
}

bool fresh_take(struct fresh *f, const char *id)
{
	if (f->n == FRESH_MAX)
		return false;
	if (2 * f->n >= f->room)
		grow(f);
	bool added = put(f->slots, f->room, hash_of(id));
	f->n += added;
	return added;
}

void fresh_done(struct fresh *f)
{
	free(f->slots);
	*f = (struct fresh){.slots = NULL};
}
