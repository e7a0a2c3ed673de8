/*
 * codex_server.h - what the files of the driver of `codex app-server` share.
 *
 *	codex.c           the table, stdin, answers to what was asked, the end
 *	codex_turn.c      turns, and what they used
 *	codex_note.c      what Codex tells, by method
 *	codex_request.c   check, argv, and what it writes: the requests
 *	codex_ask.c       Codex's questions and their answers
 *
 * JSON-RPC without its "jsonrpc" member, one object a line in both directions.
 */
#ifndef DRIVERS_CODEX_SERVER_H
#define DRIVERS_CODEX_SERVER_H

#include "drivers/codex.h"
#include "drivers/ending.h"
#include "drivers/fresh.h"

enum {
	CODEX_ASKED_MAX = 64,    /* questions open at once; the most seen is 1 */
	CODEX_REQUESTS_MAX = 64, /* of ours that wait for an answer */
	CODEX_INPUT_MAX = 64,    /* messages that wait for a turn */
	CODEX_ALWAYS_MAX = 64,   /* tools answered with "always" */
};

enum codex_request { CODEX_INITIALIZE, CODEX_THREAD, CODEX_TURN, CODEX_STEER, CODEX_INTERRUPT };

struct codex_sent {
	int id;
	enum codex_request what;
	char *text; /* owned; of a message that was put into the running turn, or NULL */
};

struct codex_asked {
	char *request;     /* owned; its id as JSON */
	char *permission;  /* owned; the same as text */
	char *call, *tool; /* owned */
	bool elicitation;  /* an MCP server's tool: answered in another way */
	bool session;      /* "for the rest of the session" is among the answers */
};

struct driver_run {
	struct codex_items items;
	enum driver_permissions permissions;
	char *resume;     /* owned, or NULL */
	struct buf start; /* owned; what is written first */
	/* Messages of the user that wait for a turn of their own, the prompt first. */
	char *waiting[CODEX_INPUT_MAX]; /* owned */
	size_t nwaiting;
	struct codex_sent sent[CODEX_REQUESTS_MAX];
	size_t nsent;
	int last_id;
	/* Owned; ids of the conversation, the turn that runs and the one that ended, or NULL. */
	char *thread, *turn, *ended;
	struct codex_asked *asked; /* owned */
	struct fresh ids;          /* of all that was asked */
	size_t nasked;
	char *always[CODEX_ALWAYS_MAX]; /* owned */
	size_t nalways;
	bool interrupting, closing; /* we asked it to stop; stdin is closed */
	bool completed;             /* the last turn was */
	bool lost;                  /* the conversation to resume is not there */
	bool waited;                /* it had another run before, in this conversation */
	bool remembers;             /* it was told "for the session", which it keeps to */
	char *error;                /* owned: the last thing that went wrong, or NULL */
	struct ending ending;
	/* Usage: the conversation's sums when this run began, and since; of its subagents. */
	bool have_base;
	struct driver_usage base, usage, others, told;
	int64_t answered; /* answers of the model whose usage was told */
	bool answering;   /* something of another one was said */
};

/* ---- codex_request.c ---- */
int codex_server_check(const struct driver_spec *spec, struct err *e);
int codex_server_command(const struct driver_spec *spec, struct driver_command *ret, struct err *e);
/* initialize, and the thread that begins or goes on. */
void codex_put_start(struct driver_run *r, const struct driver_spec *spec);
/* Each appends a line; false: it does not fit, nothing is written. */
bool codex_put_turn(struct driver_run *r, struct buf *to_stdin); /* all that waits */
bool codex_put_steer(struct driver_run *r, const char *text, struct buf *to_stdin);
bool codex_put_interrupt(struct driver_run *r, struct buf *to_stdin);
/* What a line with this id answers; false: nothing of ours.  *ret_text is owned by the caller. */
bool codex_sent_take(
        struct driver_run *r, const struct json *id, enum codex_request *ret, char **ret_text);
bool codex_awaits(const struct driver_run *r, enum codex_request what); /* is an answer owed? */

/* ---- codex_turn.c ---- */
/* What ends the run: nothing more is asked. */
void codex_fail(struct driver_run *r, const char *message, const char *code, bool *ret_eof);
/* Where no turn runs: the next one when the user has more to say, else the end. */
void codex_go_on(struct driver_run *r, struct buf *to_stdin, bool *ret_eof);
void codex_turn_begun(struct driver_run *r, const struct json *turn, struct buf *to_stdin);
bool codex_turn_completed(
        struct driver_run *r, const struct json *params, struct buf *to_stdin, bool *ret_eof);
struct driver_usage codex_usage_of(const struct json *u);
bool codex_usage(struct driver_run *r, const struct json *params);
int64_t codex_turns(const struct driver_run *r);
void codex_tell_usage(struct driver_run *r); /* emits it where it has changed */

/* ---- codex_note.c ---- */
bool codex_idle(const char *p, size_t n); /* a line between two runs: does it say nothing? */
bool codex_notification(
        struct driver_run *r, const struct json *line, struct buf *to_stdin, bool *ret_eof);

/* ---- codex_ask.c ---- */
/* A request of Codex's, which is always answered.  false: not understood (show it as raw, too). */
bool codex_ask(struct driver_run *r, const struct json *line, struct buf *to_stdin);
bool codex_answer(struct driver_run *r, const char *permission_id, enum driver_answer a,
        struct buf *to_stdin);
bool codex_ask_resolved(struct driver_run *r, const struct json *params);
void codex_ask_done(struct driver_run *r);

#endif
