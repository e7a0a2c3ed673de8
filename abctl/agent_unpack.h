/*
 * agent_unpack.h - an agent's package, as tar, into a directory: by a process of its own that can
 * do nothing else (confined.h), as ID_UNPACK.
 */
#ifndef ABCTL_AGENT_UNPACK_H
#define ABCTL_AGENT_UNPACK_H

#include "abctl/agent_facts.h"
#include "abctl/confined.h"
#include "base/err.h"

/* Other limits than untar.h's. */
struct agent_unpack_most {
	uint64_t bytes, files;
};

/* Reads the archive from `from` and puts what is taken of it below `tree`; both borrowed.  `most`
 * may be NULL.  A take from "" is everything under the archive's own names.  confined_end waits for
 * it. */
MUST_USE int agent_unpack_start(struct confined *c, int tree, int from,
        const struct agent_take *takes, size_t ntakes, const struct agent_unpack_most *most,
        struct err *e);

#endif
