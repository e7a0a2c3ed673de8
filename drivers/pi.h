/*
 * pi.h - what the two drivers of pi share.
 *
 *	pi.c           `pi --mode rpc`: requests on stdin, their answers, questions
 *	pi_json.c      `pi --mode json`: the prompt on stdin, lines out
 *	pi_event.c     the lines that both print, and how a run ended
 *	pi_tool.c      tool calls, their results, changed files
 *	pi_command.c   check, argv, files
 *
 * Recorded runs of 1.6.0 and 0.74.2 are in tests/fixtures/pi and pi-n20.
 */
#ifndef DRIVERS_PI_H
#define DRIVERS_PI_H

#include "base/json.h"
#include "drivers/calls.h"
#include "drivers/driver.h"
#include "drivers/ending.h"
#include "drivers/fresh.h"
#include "drivers/prompt.h"
#include "drivers/tail.h"

enum {
	PI_ASKED_MAX = 64,  /* questions open at once; the most seen is 1 */
	PI_ALWAYS_MAX = 64, /* tools answered with "always" */
	/* Of a call, to tell what of its output is new; pi itself cuts it at 50 KiB. */
	PI_OUTPUT_MAX = 65536,
};

struct pi_call {
	char *id, *title; /* owned */
	char *path;       /* owned, or NULL: of the file that it writes */
	char *seen;       /* owned, or NULL: its output so far */
};

struct pi_asked {
	char *id, *call, *tool; /* owned */
	bool question;          /* wants text, not a yes */
};

struct driver_run {
	struct event_sink *sink; /* borrowed: longer than the run */
	enum driver_permissions permissions;
	struct prompt prompt; /* until it is written */
	bool resumed, lost;
	char *session; /* owned, or NULL */
	struct calls calls;
	struct pi_call *open; /* owned: as many as are open */
	size_t nopen;
	struct tail text;   /* of the last message that has any */
	int64_t messages;   /* begun by the agent */
	int64_t text_of;    /* the message that `text` is of */
	char *stop, *error; /* owned: how the last message ended and why, or NULL */
	bool settled;       /* it has said its last word */
	struct driver_usage usage, told;
	struct ending ending;
	/* rpc only */
	int prompts, unanswered; /* sent; and not answered yet */
	bool interrupting, closing;
	bool stays;                       /* for another run: the sums are waited for */
	bool waited;                      /* it had another run before */
	bool known;                       /* the sums of the session when this run began: */
	struct driver_usage before, sums; /* and the last that were told */
	struct pi_asked asked[PI_ASKED_MAX];
	size_t nasked;
	struct fresh ids;            /* of all that was asked */
	char *always[PI_ALWAYS_MAX]; /* owned */
	size_t nalways;
};

/* ---- pi_event.c ---- */
struct driver_run *pi_open(
        const struct driver *d, const struct driver_spec *spec, struct event_sink *sink);
void pi_close(struct driver_run *r);
/* false: not understood (show it as raw). */
bool pi_event(struct driver_run *r, const struct json *line);
bool pi_is_silent(const char *type);                   /* of a line that says nothing */
void pi_session(struct driver_run *r, const char *id); /* NULL or unusable: ignored */
void pi_tell_usage(struct driver_run *r);
void pi_error_line(struct driver_run *r, const char *p, size_t n);
int64_t pi_turns(const struct driver_run *r);
void pi_end(struct driver_run *r, const struct driver_exit *x, struct driver_outcome *ret);

/* ---- pi_tool.c ---- */
bool pi_tool_start(struct driver_run *r, const struct json *line);
bool pi_tool_update(struct driver_run *r, const struct json *line);
bool pi_tool_end(struct driver_run *r, const struct json *line);
void pi_tools_close(struct driver_run *r); /* a result for each that is open */
void pi_tools_done(struct driver_run *r);

/* ---- pi_command.c ---- */
bool pi_session_ok(const char *id);
int pi_check(const struct driver_spec *spec, struct err *e);
int pi_rpc_command(const struct driver_spec *spec, struct driver_command *ret, struct err *e);
int pi_json_check(const struct driver_spec *spec, struct err *e);
int pi_json_command(const struct driver_spec *spec, struct driver_command *ret, struct err *e);

#endif
