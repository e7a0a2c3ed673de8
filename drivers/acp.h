/*
 * acp.h - what the files of the Agent Client Protocol driver share.
 *
 *	acp.c             the driver's table, its lines by kind, stdin
 *	acp_command.c     check, argv, files
 *	acp_session.c     from initialize to the prompt, and the prompt's answer
 *	acp_tools.c       tool calls and their results
 *	acp_diff.c        changed files: two texts as a unified diff
 *	acp_permission.c  who may do what; questions to a person
 *	acp_served.c      what agentbox-acp did for the agent
 *	acp_end.c         usage and the outcome
 *
 * Speaks version 1 of the protocol: JSON-RPC 2.0, one object a line in both
 * directions (recorded runs of seven agents in tests/fixtures/AGENT/acp-*).
 * docs/AGENTS.md tells what becomes of each message.
 */
#ifndef DRIVERS_ACP_H
#define DRIVERS_ACP_H

#include "base/json.h"
#include "drivers/calls.h"
#include "drivers/driver.h"
#include "drivers/ending.h"
#include "drivers/fresh.h"
#include "drivers/tail.h"

enum {
	ACP_ASKED_MAX = 64,  /* questions open at once; the most seen is 1 */
	ACP_ALWAYS_MAX = 64, /* tools answered with "always" where the agent has no such option */
	ACP_DIFFS_MAX = 64,  /* files that one call changes */
	ACP_OVER_MAX = 64,   /* ids of calls that have ended: late news of them is no new call */
	ACP_DIFF_BYTES = 32 << 20, /* of all open calls: one of the longest line fits */
	ACP_OUTPUT_MAX = 65536,    /* of a call, to tell what of its output is new */
	ACP_WRITTEN_MAX = 64,      /* files held back until the open calls have ended */
	ACP_TERMINALS_MAX = 64,    /* as many as agentbox-acp has */
};

/* Which answer of the agent is waited for; each but the prompt's leads to the next request. */
enum acp_state {
	ACP_INITIALIZE,
	ACP_AUTHENTICATE,
	ACP_SESSION, /* session/new, load or resume */
	ACP_MODE,
	ACP_MODEL,
	ACP_PROMPT,
	ACP_CLOSED, /* stdin is closed or about to be */
};

struct acp_diff {
	char *path, *was, *is; /* owned; `was` NULL: the file is new */
	bool deleted;
};

struct acp_call {
	char *id, *name, *kind, *title; /* owned */
	char *input;                    /* owned: JSON text, or NULL */
	char *where;                    /* owned: the first of its locations, or NULL */
	char *terminal;                 /* owned: the one whose output is its own, or NULL */
	bool announced;                 /* tool.call was emitted */
	struct buf output;              /* told so far by tool.update */
	struct acp_diff *diffs;         /* owned */
	size_t ndiffs, diff_bytes;
};

struct acp_asked {
	char *id;                   /* owned: of the request, as JSON text */
	char *permission;           /* owned: the same for people, without quotes */
	char *call;                 /* owned: callId */
	char *tool;                 /* owned */
	char *once, *always, *deny; /* owned: option ids, or NULL: not offered */
	bool deny_once;             /* deny is for this call alone */
	char *field, *type;         /* owned: of a question, what its answer is; else NULL */
};

struct acp_written {
	char *path; /* owned */
	bool added;
};

struct acp_terminal {
	char *id;          /* owned */
	struct buf output; /* not told yet: no call has named it */
	bool ended;
	int code; /* then; -1: a signal */
};

struct acp_message {
	char *p; /* owned */
	size_t n;
};

struct driver_run {
	struct event_sink *sink; /* borrowed: longer than the run */

	/* from the specification */
	struct acp_message *prompts; /* owned: those that wait for their turn */
	size_t nprompts;
	char *system, *model, *resume, *mode, *auth; /* owned, or NULL */
	char *model_config;  /* owned: the option that sets the model, or NULL: a request of its own
	                      */
	char *mcp;           /* owned: mcpServers as JSON text */
	bool mcp_http;       /* one of them is a URL */
	char **failure_text; /* owned, NULL-terminated, or NULL */
	bool usage_sums;
	bool files, serves_terminals; /* agentbox-acp is there and does that */
	enum driver_permissions permissions;

	/* the conversation */
	enum acp_state state;
	int request;        /* id of the last request */
	bool load, resumes; /* the agent can load, resume a session */
	bool http;          /* it can reach MCP servers at URLs */
	bool authenticated; /* it was asked to */
	bool waited;        /* it had another run before, in this session */
	bool remembers;     /* it was told "always", which it keeps to */
	bool loaded;        /* the session is an old one */
	bool history;       /* it is telling the old session once more */
	bool interrupting;
	char *session;   /* owned, or NULL */
	char *asked_for; /* owned: the first prompt, as long as the old session may be told */

	struct calls calls;
	struct acp_call *known; /* owned: calls that have not ended */
	size_t nknown, diff_bytes;
	char *over[ACP_OVER_MAX]; /* owned */
	size_t nover;
	struct acp_asked *asked; /* owned */
	struct fresh ids;        /* of all that was asked */
	size_t nasked;
	char **always; /* owned */
	size_t nalways;

	struct acp_written written[ACP_WRITTEN_MAX];
	size_t nwritten;
	struct acp_terminal terminals[ACP_TERMINALS_MAX];
	size_t nterminals;

	struct tail text;  /* of the last message */
	char *message;     /* owned: its id, or NULL */
	bool text_ended;   /* what comes next is another message */
	bool did;          /* something was said or done in this turn */
	bool refused;      /* and a permission was, since when nothing was said or done */
	struct tail piece; /* its last piece, for failure_text */

	/* outcome so far */
	bool success, max_turns, resume_lost;
	char *error;                     /* owned, or NULL */
	struct driver_usage usage, step; /* of finished turns; of this one, piece by piece */
	double cost;                     /* of the session so far; negative: not known */
	struct driver_usage before;      /* of an agent that waited: the session's when it did */
	struct ending ending;
};

/* ---- acp.c ---- */
bool acp_drops(const char *kind); /* of an update: nothing that an event does not say better */

/* ---- acp_command.c ---- */
int acp_check(const struct driver_spec *spec, struct err *e);
int acp_command(const struct driver_spec *spec, struct driver_command *ret, struct err *e);
char *acp_mcp_text(const struct driver_spec *spec); /* returns owned */

/* ---- acp_session.c ---- */
void acp_initialize(struct driver_run *r, struct buf *to_stdin);
/* The prompt alone, where all else was said for an earlier run. */
void acp_prompt(struct driver_run *r, struct buf *to_stdin);
/* An answer to a request of ours.  false: to none that is open. */
bool acp_answered(struct driver_run *r, const struct json *line, struct buf *to_stdin);
void acp_cancel(struct driver_run *r, struct buf *to_stdin);
void acp_note_prompt(struct driver_run *r, const char *p, size_t n);

/* ---- acp_tools.c ---- */
/* A tool_call, a tool_call_update, or the toolCall of a permission request.  NULL: not understood.
 */
struct acp_call *acp_call_seen(struct driver_run *r, const struct json *call);
bool acp_tool_update(struct driver_run *r, const struct json *update);
/* Tells those calls that were held back until their input is whole; `but` may be NULL. */
void acp_tools_tell(struct driver_run *r, const struct acp_call *but);
const char *acp_call_title(const struct json *call); /* NULL: it has none */
void acp_call_tell(struct driver_run *r, struct acp_call *c);
/* More of its output. */
void acp_output_tell(struct driver_run *r, struct acp_call *c, const char *more, size_t n);
void acp_tools_close(struct driver_run *r, const char *why);
void acp_tools_done(struct driver_run *r);

/* ---- acp_diff.c ---- */
void acp_diff_keep(struct driver_run *r, struct acp_call *c, const struct json *block);
void acp_diffs_emit(struct driver_run *r, const struct acp_call *c);
void acp_diffs_done(struct driver_run *r, struct acp_call *c);

/* ---- acp_permission.c ---- */
/* A request of the agent; always answers it or keeps it.  false: not understood, refused. */
bool acp_request(struct driver_run *r, const struct json *line, struct buf *to_stdin);
bool acp_answer(struct driver_run *r, const char *permission_id, enum driver_answer a,
        struct buf *to_stdin);
bool acp_reply(struct driver_run *r, const char *question_id, const char *p, size_t n,
        struct buf *to_stdin);
/* Takes back what is open, as the protocol wants it before a cancel. */
void acp_permissions_cancel(struct driver_run *r, struct buf *to_stdin);
bool acp_withdrawn(struct driver_run *r, const struct json *params, struct buf *to_stdin);
void acp_permissions_done(struct driver_run *r);

/* ---- acp_served.c ---- */
/* A notification of agentbox-acp's.  false: none that is known. */
bool acp_served(struct driver_run *r, const char *method, const struct json *params);
/* A call has told that file; all that none has told. */
void acp_written_told(struct driver_run *r, const char *path);
void acp_written_tell(struct driver_run *r);
/* What is new of the terminal that a call names, and how it ended; then it is forgotten. */
void acp_terminal_tell(struct driver_run *r, struct acp_call *c);
bool acp_terminal_code(struct driver_run *r, const struct acp_call *c, int *ret);
void acp_terminal_forget(struct driver_run *r, const struct acp_call *c);
void acp_served_done(struct driver_run *r);

/* ---- acp_end.c ---- */
void acp_usage_piece(struct driver_run *r, const struct json *usage);
void acp_usage_turn(struct driver_run *r, const struct json *result);
void acp_fail(struct driver_run *r, const char *message, const char *code);
void acp_stopped(struct driver_run *r, const struct json *result);
void acp_refused(struct driver_run *r, const struct json *error);
/* What the next run of an agent that waits must know, and the other way round. */
char *acp_rest(const struct driver_run *r);
void acp_take_live(struct driver_run *r, const char *live);
bool acp_idle(const char *p, size_t n);
void acp_end(struct driver_run *r, const struct driver_exit *x, struct driver_outcome *ret);

#endif
