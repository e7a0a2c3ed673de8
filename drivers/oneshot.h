/*
 * oneshot.h - agents that get their prompt on stdin, print JSON lines and exit.
 *
 *	oneshot.c   what they share: stdin, lines, text, calls, how it ended
 *	opencode.c  `opencode run --format json`
 *	gemini.c    `gemini -o stream-json`
 *	copilot.c   `copilot --output-format json`
 *
 * A dialect is a table of differences.  Its `line` turns one object into events
 * and says when the last word came: success() or fail().  A line is understood,
 * known to carry nothing, or passed on whole as agent.raw.
 */
#ifndef DRIVERS_ONESHOT_H
#define DRIVERS_ONESHOT_H

#include "base/json.h"
#include "drivers/calls.h"
#include "drivers/driver.h"
#include "drivers/ending.h"
#include "drivers/looks.h"
#include "drivers/prompt.h"
#include "drivers/tail.h"

struct driver_dialect {
	struct looks looks;
	const char *lost;         /* on stderr: the session to go on with is not there */
	const char *const *noise; /* beginnings of lines on stderr that explain no end, or NULL */
	/* Its last word is its exit code: any but 0 after success() is a failure.  Else signals and
	 * 128 + N are not: whoever waits no longer may kill what is left. */
	bool exit_is_word;
	bool (*line)(struct driver_run *r, const struct json *line); /* false: not understood */
};

struct driver_run {
	const char *name; /* of the driver */
	const struct driver_dialect *dialect;
	struct event_sink *sink; /* borrowed: longer than the run */
	struct prompt prompt;    /* until it is written */
	bool resumed, lost;
	char *session; /* owned: the agent's own id, or NULL */
	struct calls calls;
	struct tail text; /* of the last message */
	char *message;    /* owned: id of that message, or NULL */
	bool next_is_new; /* what is said next is another message, where they have no ids */
	const char *stop; /* literal: why it stopped without a last word, or NULL */
	char *retry;      /* owned: what a retry will be for, or NULL */
	struct ending ending;
	struct driver_usage usage;
	bool won, max_turns;
	int64_t begun; /* answers of the model, where it tells of them */
	char *error;   /* owned: why it failed, or NULL */
};

/* ---- for the table of a driver ---- */
struct driver_run *oneshot_open(
        const struct driver *d, const struct driver_spec *spec, struct event_sink *sink);
int oneshot_start(struct driver_run *r, struct buf *to_stdin, bool *ret_eof);
void oneshot_line(struct driver_run *r, const char *p, size_t n, bool whole, struct buf *to_stdin,
        bool *ret_eof);
void oneshot_error_line(struct driver_run *r, const char *p, size_t n);
int64_t oneshot_turns(const struct driver_run *r);
void oneshot_end(struct driver_run *r, const struct driver_exit *x, struct driver_outcome *ret);
void oneshot_close(struct driver_run *r);

/* ---- for a dialect ---- */
void oneshot_session(struct driver_run *r, const char *id); /* NULL, or no id: ignored */
/* A piece of the answer, or all of it; `id` of the message, or NULL. */
bool oneshot_text(struct driver_run *r, const char *text, bool delta, const char *id);
bool oneshot_thinking(struct driver_run *r, const char *text, bool delta, const char *id);
/* false: no usable id or name, or the call is open already. */
bool oneshot_call(struct driver_run *r, const char *id, const char *name, const struct json *input);
/* `code` negative: not known.  false: no such call is open. */
bool oneshot_result(struct driver_run *r, const char *id, bool ok, const char *output, int code);
/* `diff` may be NULL, or have a head before its hunks. */
void oneshot_changed(struct driver_run *r, const char *path, const char *change, const char *diff);
void oneshot_success(struct driver_run *r);
void oneshot_fail(struct driver_run *r, const char *message, const char *code);

/* What these agents cannot be told is refused: -ENOEXEC with the reason. */
MUST_USE int oneshot_check(const struct driver *d, const struct driver_spec *spec, struct err *e);

#endif
