/*
 * calls.h - the tool calls of a run that have not answered yet.
 *
 * Remembers each call's name, so that its result can tell it, and which calls
 * are still open when the agent ends, so that each gets a result.
 */
#ifndef DRIVERS_CALLS_H
#define DRIVERS_CALLS_H

#include "drivers/event.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	CALLS_OPEN_MAX = 1024, /* parallel calls; the most seen from an agent is 2 */
	CALLS_TEXT_MAX = 256,  /* an id or a name; the longest seen is 30 */
	CALLS_PATH_MAX = 4096,
};

struct call {
	char *id, *name; /* owned */
	char *path;      /* owned: the file that it changes, or NULL */
};

struct calls {
	struct call *open; /* owned */
	size_t n;
	int64_t total;
};

/* Is this usable as the id or name of a call? */
bool calls_text_ok(const char *s);
/* false: the same id is open already, or too many are. */
bool calls_start(struct calls *c, const char *id, const char *name);
const char *calls_name(const struct calls *c, const char *id); /* NULL: not open */
/* The file that an open call changes; NULL: none, or not known. */
void calls_set_path(struct calls *c, const char *id, const char *path);
const char *calls_path(const struct calls *c, const char *id);
void calls_finish(struct calls *c, const char *id);
/* Emits a failed tool.result with `why` as the output for each open call. */
void calls_close_all(struct calls *c, struct event_sink *sink, const char *why);
void calls_done(struct calls *c);

#endif
