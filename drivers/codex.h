/*
 * codex.h - what the two drivers of Codex share: items.
 *
 *	codex_server.h    `codex app-server`, both ways
 *	codex_exec.c      `codex exec --json`: one prompt, lines out
 *	codex_items.c     items of both: messages, thoughts, calls, changed files
 *
 * An item is a message, a thought or a tool call; it begins and is done.  The
 * names of members are camelCase in the app-server and snake_case in exec.
 */
#ifndef DRIVERS_CODEX_H
#define DRIVERS_CODEX_H

#include "base/json.h"
#include "drivers/calls.h"
#include "drivers/driver.h"
#include "drivers/tail.h"

struct codex_items {
	struct event_sink *sink; /* borrowed: longer than the run */
	struct calls calls;
	struct tail text; /* of the last message */
	char *partial;    /* owned: id of the message that is being written, or NULL */
	/* Owned: id of the call begun last, its title and input (JSON text), or NULL. */
	char *title_of, *title, *input;
};

/* Each: false when the item is not understood whole (show it as raw, too). */
/* What an item, or a question with the same members, was asked to do: an object as JSON text. */
char *codex_input_of(const struct json *item); /* returns owned */
bool codex_item_started(struct codex_items *c, const struct json *item);
bool codex_item_completed(struct codex_items *c, const struct json *item);
/* A piece of a message that is being written. */
bool codex_text_delta(struct codex_items *c, const char *id, const char *text);
/* steps: [{KEY, status}] of plan.updated; a status is completed, inProgress, or pending; a bool
 * member "completed" says it, too. */
bool codex_plan(struct codex_items *c, const struct json *steps, const char *key);
void codex_items_done(struct codex_items *c);

#endif
