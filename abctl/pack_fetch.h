/*
 * pack_fetch.h - a pack's files from where it comes: fetched in a jail, unpacked in another that
 * has no network (agent_fetch.h), or copied.
 */
#ifndef ABCTL_PACK_FETCH_H
#define ABCTL_PACK_FETCH_H

#include "abctl/agent_fetch.h"
#include "abctl/pack_source.h"

struct pack_fetch {
	struct agent_fetch jail;
	char commit[AGENT_HEAD_MAX];      /* result: of git, or "" */
	char integrity[DIGEST_INTEGRITY]; /* result: of the archive, or "" */
};

/* Into `tree`.  0, or an exit code after having said why. */
int pack_fetch(struct pack_fetch *f, const struct pack_source *s, int tree);

#endif
