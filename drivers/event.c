#include "drivers/event.h"
#include "base/mem.h"

#include <string.h>

static const char *const names[] = {
#define EVENT_NAME(sym, name) [EVENT_##sym] = (name),
        EVENT_TYPES(EVENT_NAME)
#undef EVENT_NAME
};
_Static_assert(ARRAY_LEN(names) == EVENT_COUNT, "every event has a name");

const char *event_name(enum event_type t)
{
	return names[t];
}

int event_by_name(const char *name)
{
	for (int i = 0; i < EVENT_COUNT; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}
