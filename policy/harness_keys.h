/*
 * harness_keys.h - the front matter of a harness as a key table.
 *
 * Internal to harness.c and the manual: the rows fill struct harness_build.
 */
#ifndef POLICY_HARNESS_KEYS_H
#define POLICY_HARNESS_KEYS_H

#include "policy/harness.h"
#include "policy/keys.h"

struct harness_build {
	struct harness h;      /* first: the rows' offsets are its own */
	struct limits also;    /* narrow.limits; `limits` goes to h.narrow; the smaller counts */
	char **driver_command; /* owned: driverOptions.command */
	int driver_command_line;
};

/* Offset of a field of the harness that is being built. */
#define HARNESS_AT(field) offsetof(struct harness_build, h.field)

extern const struct key_table harness_keys;
extern const struct key_table agent_keys;

#endif
