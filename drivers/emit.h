/*
 * emit.h - what every driver does to hand events to its sink.
 *
 * An event is written with a struct jw into a buffer of EMIT_BUF's limit, then
 * emitted.  A buffer that overflowed is never emitted half: emit_members says
 * so and the caller passes the line on as agent.raw, which always fits.
 */
#ifndef DRIVERS_EMIT_H
#define DRIVERS_EMIT_H

#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "drivers/driver.h"
#include "drivers/event.h"

#include <stdbool.h>

/* Room for the envelope that the supervisor puts in front. */
#define EMIT_BUF BUF_INIT(LIMIT_EVENT - 4096)

/* false: the members did not fit and nothing was emitted. */
bool emit_members(struct event_sink *sink, enum event_type t, const struct buf *members);

/* agent.raw: a line in pieces of at most LIMIT_RAW_PIECE bytes, cut between characters; all but
 * the last carry "more":true, the last one too when `more`.  `stream` NULL: stdout. */
void emit_raw(struct event_sink *sink, const char *stream, const char *p, size_t n, bool more);

/* After a whole line, or a piece of one, of stdout: agent.raw, where the events do not say all of
 * it. */
void emit_unsaid(struct event_sink *sink, bool understood, const char *p, size_t n, bool whole);

/* error: `code` may be NULL.  `retryable` means that the agent itself tries again. */
void emit_error(struct event_sink *sink, const char *message, const char *code, bool retryable);

/* agent.message or agent.thinking; `id` and `parent` may be NULL. */
bool emit_text(struct event_sink *sink, enum event_type t, const char *text, size_t n, bool delta,
        const char *id, const char *parent);

/* tool.call; an input that is no object becomes {}, `parent` may be NULL. */
bool emit_call(struct event_sink *sink, const char *id, const char *name, const char *kind,
        const struct json *input, const char *title, const char *parent);
/* tool.result; a negative code is not told.  false: of the output only a piece fitted. */
bool emit_result(struct event_sink *sink, const char *id, const char *name, bool ok,
        const char *output, size_t n, int code);
/* file.changed, as far as it fits: the result of the call is told anyway. */
void emit_changed(
        struct event_sink *sink, const char *path, const char *change, const char *diff, size_t n);
/* plan.updated, from a list of {content or description, status}. */
void emit_todos(struct event_sink *sink, const struct json *todos);

/* usage: the sums of the run so far. */
void emit_usage(struct event_sink *sink, const struct driver_usage *u);

/* What of a question's input goes with it; of more, only how much it is.  Who has more to look at
 * than this before a yes finds it in the call. */
enum { EMIT_INPUT_MAX = 256 << 10 };
/* permission.asked; it may be answered once, always, deny.  `input`: an object as JSON text, which
 * is what will run; NULL: not told. */
void emit_asked(struct event_sink *sink, const char *permission, const char *call, const char *tool,
        const char *title, const char *input);
/* permission.answered; `by` is user, harness or agent, `reason` may be NULL. */
void emit_answered(struct event_sink *sink, const char *permission, const char *call,
        const char *answer, const char *by, const char *reason);
/* question.asked; `options` is a list of texts, or none. */
void emit_question(
        struct event_sink *sink, const char *id, const char *text, const struct json *options);
/* question.answered; "" when nobody has. */
void emit_question_answered(struct event_sink *sink, const char *id, const char *text);
const char *emit_answer_word(enum driver_answer a); /* "once", "always", "deny" */

/* The text of a list of content blocks, a line each; of one without text its type.  What is no list
 * has none. */
void emit_blocks(struct buf *to, const struct json *content);
/* A title is one line of a terminal: the first line, at most 120 bytes of it; returns owned. */
char *emit_title(const char *text);
/* A path as events have it: without the workspace in front. */
const char *emit_path(const char *path);

#endif
