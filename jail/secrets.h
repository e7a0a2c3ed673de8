/*
 * secrets.h - from root's places to egress: values that agentboxd passes on and
 * never looks at.
 *
 * For every name that the configuration lists or a policy injects, the value is
 * read from its place (a root-owned file, $CREDENTIALS_DIRECTORY, the daemon's
 * environment) into a sealed memfd of struct egress_secret.  A name that no
 * configuration lists is looked for as environment variable NAME and then as
 * /etc/agentbox/secrets/NAME.  A missing value is not an error here: egress
 * says so to whoever needs it.
 *
 * A file may be read by root alone.  A command runs as nobody in particular; when it fails, what it
 * printed last stays in use.
 *
 * The environment is wiped after the first load; values that came from it are
 * carried over from the last memfd at a reload.
 */
#ifndef JAIL_SECRETS_H
#define JAIL_SECRETS_H

#include "base/buf.h"
#include "base/err.h"
#include "policy/policy.h"

#include <stdbool.h>

#define SECRETS_DIR "/etc/agentbox/secrets"

enum {
	/* All commands of one load together: a start waits for them, or the child of a reload. */
	SECRETS_COMMANDS_MS = 5000,
};

struct secrets_places {
	const char *dir;         /* SECRETS_DIR */
	const char *credentials; /* $CREDENTIALS_DIRECTORY as it was at start, or NULL */
	int previous;            /* memfd of the last load, or -1: the environment still holds */
	bool files_only;         /* commands are not run: what they printed last stays */
	struct buf *troubles;    /* gets a line for each that is not as root meant it */
};

/* Sealed memfd (owned), or -errno.  Names without a value are listed in `missing`, with why. */
MUST_USE int secrets_load(const struct policy_set *set, const struct secrets_places *places,
        struct buf *missing, struct err *e);

/* Overwrites the environment block of this process, /proc/PID/environ included. */
void environment_wipe(void);

#endif
