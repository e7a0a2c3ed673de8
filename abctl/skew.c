#include "abctl/skew.h"

#include "abctl/fail.h"
#include "base/version.h"

#include <stdbool.h>
#include <string.h>

void skew_note(const char *told)
{
	static bool said; /* of the one daemon that a process talks to */
	if (strcmp(told, AGENTBOX_VERSION_VALUE) != 0 && !said)
		fail_note("the daemon is version %.*s, this abctl is " AGENTBOX_VERSION
		          ": what only one of them knows is refused",
		        (int)strcspn(told, ";"), told);
	said = true;
}
