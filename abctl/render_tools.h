/*
 * render_tools.h - tool calls of a run: which are open, and one line for each
 * that has ended.
 *
 * Agents choose the ids, so the table is small and forgets the oldest: a call
 * without a row is still printed, only without its duration.
 */
#ifndef ABCTL_RENDER_TOOLS_H
#define ABCTL_RENDER_TOOLS_H

#include "abctl/render_writer.h"

enum { TOOLS_OPEN = 64 }; /* at once: the most parallel calls seen from an agent is 10 */

struct tool_call {
	char *id;           /* owned; NULL: a free row */
	char *name, *title; /* owned */
	int64_t since_ms;
	uint64_t order;
};

struct tools {
	struct tool_call open[TOOLS_OPEN];
	uint64_t seen; /* calls so far */
};

void tools_done(struct tools *t);

void tools_call(struct tools *t, const struct json *event, int64_t at_ms);
void tools_result(struct tools *t, const struct json *event, int64_t at_ms, struct writer *w);
/* The run is over: what is still open has no outcome. */
void tools_abandon(struct tools *t, struct writer *w);
/* What is being done now: the newest open call, or NULL. */
const struct tool_call *tools_current(const struct tools *t);

#endif
