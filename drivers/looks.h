/*
 * looks.h - what an agent's built-in tools do, and how a call of one reads to a person.
 */
#ifndef DRIVERS_LOOKS_H
#define DRIVERS_LOOKS_H

#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>

struct look {
	const char *name, *kind;
	const char *subject; /* member of the input that says it best, or NULL */
	bool path;           /* the subject is a path: the title has the tool's name in front */
};

struct looks {
	const struct look *at;
	size_t n;
};

const char *looks_kind(const struct looks *l, const char *name); /* "other": not in the table */
/* One line; paths without `cwd` in front (NULL: not known).  Returns owned. */
char *looks_title(
        const struct looks *l, const char *cwd, const char *name, const struct json *input);
/* The path that a call changes, when it is one of a tool that edits; borrowed of input, or NULL. */
const char *looks_edits(const struct looks *l, const char *name, const struct json *input);
/* A path without the folder in front. */
const char *looks_below(const char *cwd, const char *path);

#endif
