/*
 * agent_fetch.h - a package from npm's registry: fetched in a jail whose policy lets that and
 * nothing else out, checked out here, unpacked in a jail without a network.
 */
#ifndef ABCTL_AGENT_FETCH_H
#define ABCTL_AGENT_FETCH_H

#include "abctl/agent_facts.h"
#include "abctl/agent_unpack.h"
#include "abctl/verb.h"
#include "base/digest.h"
#include "base/err.h"

#include <stdbool.h>

enum { AGENT_NPM_MAX = 64, AGENT_HEAD_MAX = 256 };

struct agent_fetch {
	const struct cli *cli;
	const char *policy;   /* of the jail that fetches */
	const char *registry; /* NULL: npm's own */
	const char *agent;    /* for what is shown */
	int dir;              /* where the bytes are kept meanwhile, under no name */
	bool progress;        /* show how far it is */
	const struct agent_unpack_most *most; /* of what is unpacked, or NULL */
	char npm[AGENT_NPM_MAX];              /* result: versions of npm and node that fetched */
};

/* "NAME@VERSION" with that integrity, and what is taken of it below `tree`, which is ID_UNPACK's.
 * 0, or an exit code after having said why. */
int agent_fetch(struct agent_fetch *f, const char *package, const char *integrity, int tree,
        const struct agent_take *takes, size_t ntakes);

/* What that is made of.  A command in a jail whose first line is the head, and the rest the bytes:
 * `file` has them from where it then stands.  0, the command's exit code, or minus one of ours
 * after having said why; head has nothing but letters, digits, dots, dashes and blanks. */
int agent_fetch_run(
        struct agent_fetch *f, const char *const *argv, int file, char head[AGENT_HEAD_MAX]);
/* A package as npm has it, whichever it is; said as agent_fetch() does. */
int agent_fetch_npm(struct agent_fetch *f, const char *package, int file);
/* The digest of what `file` has from where it stands, where it is left. */
int agent_fetch_digest(int file, char ret[DIGEST_INTEGRITY]);
/* Unpacks that; `package` is for messages. */
int agent_fetch_unpack(struct agent_fetch *f, const char *package, int file, int tree,
        const struct agent_take *takes, size_t ntakes);

/* From here on signals that end a program end what is waited for instead, and fetches fail. */
void agent_fetch_watch(void);

#endif
