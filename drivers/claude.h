/*
 * claude.h - what the files of the Claude Code driver share, and those of agents that speak alike.
 *
 *	claude.c             the driver's table, its lines by type, stdin
 *	claude_system.c      what it says of itself: its tools, servers, retries
 *	claude_command.c     check, argv, environment, files
 *	claude_tools.c       tool calls, their results, changed files
 *	claude_plan.c        the plan, from TodoWrite and the Task tools
 *	claude_permission.c  who may run which tool
 *	claude_question.c    what Claude asks a person
 *	claude_result.c      usage, the result line, the outcome
 *	qwen.c, amp.c        other agents: a struct driver_dialect and a command line
 *
 * Speaks `claude -p --input-format stream-json --output-format stream-json`:
 * one JSON object a line in both directions (recorded runs of 2.1.332 in
 * tests/fixtures/claude).  docs/AGENTS.md tells what becomes of each line.
 */
#ifndef DRIVERS_CLAUDE_H
#define DRIVERS_CLAUDE_H

#include "base/json.h"
#include "drivers/calls.h"
#include "drivers/driver.h"
#include "drivers/ending.h"
#include "drivers/fresh.h"
#include "drivers/looks.h"
#include "drivers/tail.h"

enum {
	CLAUDE_ASKED_MAX = 64,         /* permission questions open at once; the most seen is 2 */
	CLAUDE_ASKED_BYTES = 32 << 20, /* of their inputs: one of the longest line fits */
	CLAUDE_ALWAYS_MAX = 64,        /* tools answered with "always" */
	CLAUDE_FORMS_MAX = 16,         /* calls of AskUserQuestion open at once */
	CLAUDE_PARTS_MAX = 4,          /* questions of one; Claude's own limit */
	CLAUDE_FORM_BYTES = 1 << 20,   /* of their inputs */
	CLAUDE_TASKS_MAX = 1000,       /* entries of a plan; what comes after them is not shown */
};

struct claude_asked {
	char *request, *call, *tool, *input; /* owned; input as JSON text */
};

struct claude_form; /* claude_question.c */

struct claude_task {
	char *id, *text, *status; /* owned */
};

/* How an agent differs. */
struct driver_dialect {
	struct looks looks;
	const char *lost;         /* the session to go on with is not there any more */
	const char *const *noise; /* beginnings of lines on stderr that explain no end, or NULL */
	const char *hangs;        /* beginning of a line on stdout after which it waits for ever */
	bool greets;              /* asks and obeys only who has sent `initialize` */
	bool one_message;         /* stdin ends with the prompt */
	/* Its counts have cached tokens in the input, and a result's are those of the conversation;
	 * what a turn used, the last line of each message says, too. */
	bool sums;
	bool files_by_input; /* which file a call changes, only its input says */
	bool questions;      /* AskUserQuestion takes a person's answers */
	int turns_code;      /* exit code at the limit of turns, told by no result; 0: none */
	/* Of a command that ended; false: it is not told. */
	bool (*exit_code)(const char *tool, bool ok, const char *output, const struct json *detail,
	        int *ret_code);
};

struct driver_run {
	const char *name; /* of the driver */
	const struct driver_dialect *dialect;
	struct event_sink *sink; /* borrowed: longer than the run */
	struct buf start;        /* bytes of the first user message */
	bool closing;            /* stdin is closed or about to be */
	bool interrupting;       /* we asked it to stop */
	bool asks;               /* it asks on stdout before it runs a tool */
	size_t subagents;        /* running in the background */

	/* from the specification */
	char **allow; /* owned, NULL-terminated, or NULL: no restriction */
	enum driver_permissions permissions;
	char *resume; /* owned, or NULL */

	/* from system/init */
	char *cwd, *session; /* owned, or NULL */

	struct calls calls;
	struct tail text;           /* of the last message of the main agent */
	char *message;              /* owned: id of that message, or NULL */
	int64_t messages;           /* of the main agent */
	struct claude_asked *asked; /* owned */
	struct fresh ids;           /* of all that was asked */
	size_t nasked;
	struct claude_form *forms[CLAUDE_FORMS_MAX]; /* owned */
	size_t nforms;
	char **always; /* owned */
	size_t nalways;
	struct claude_task *tasks; /* owned */
	size_t ntasks;
	struct ending ending;

	/* outcome so far */
	bool have_result, success, max_turns, resume_lost;
	char *result;               /* owned: text of the result line, or NULL */
	char *error;                /* owned: why it failed, or NULL */
	char *fault;                /* owned: a rule broken, whatever the result says, or NULL */
	struct driver_usage usage;  /* of finished turns */
	struct driver_usage turn;   /* lower bound for the turn that is running */
	double cost_before;         /* total_cost_usd of the last result, negative: not known */
	bool before_known;          /* of a dialect whose counts are sums: */
	struct driver_usage before; /* those of the last result */
};

/* ---- claude.c ---- */
struct driver_run *claude_open(
        const struct driver *d, const struct driver_spec *spec, struct event_sink *sink);
int claude_start(struct driver_run *r, struct buf *to_stdin, bool *ret_eof);
void claude_line(struct driver_run *r, const char *p, size_t n, bool whole, struct buf *to_stdin,
        bool *ret_eof);
void claude_error_line(struct driver_run *r, const char *p, size_t n);
int64_t claude_turns(const struct driver_run *r);
bool claude_interrupt(struct driver_run *r, struct buf *to_stdin);
bool claude_input(struct driver_run *r, const char *p, size_t n, struct buf *to_stdin);
void claude_close(struct driver_run *r);

/* ---- claude_system.c ---- */
void claude_set(char **to, const char *with); /* a copy, for an owned string */
/* A line of type system.  false: not understood. */
bool claude_system(struct driver_run *r, const struct json *line, struct buf *to_stdin);

/* ---- claude_command.c ---- */
int claude_check(const struct driver_spec *spec, struct err *e);
int claude_command(const struct driver_spec *spec, struct driver_command *ret, struct err *e);
/* Patterns, or single tools of an MCP server: then every such call is asked for. */
bool claude_wants_asking(const struct driver_spec *spec);
/* The rules as they are used: tools_allow and the servers of the harness.  NULL: no restriction.
 * Returns owned, as its strings. */
char **claude_allow_list(const struct driver_spec *spec);

/* ---- claude_tools.c ---- */
extern const struct driver_dialect claude_itself;
char *claude_tool_title(const struct driver_run *r, const char *name, const struct json *input);
/* A tool_use block.  false: not understood. */
bool claude_tool_use(struct driver_run *r, const struct json *block, const char *parent);
/* A tool_result block; `detail` is the line's tool_use_result, or NULL.  false: as above. */
bool claude_tool_result(struct driver_run *r, const struct json *block, const struct json *detail);

/* ---- claude_plan.c ---- */
void claude_plan_call(struct driver_run *r, const char *name, const struct json *input);
/* Once the tool succeeded; `detail` is its tool_use_result. */
void claude_plan_result(struct driver_run *r, const char *name, const struct json *detail);
void claude_plan_done(struct driver_run *r);

/* ---- claude_permission.c ---- */
/* A control_request; always answers it.  false: not understood (refused, and shown as raw). */
bool claude_control_request(struct driver_run *r, const struct json *line, struct buf *to_stdin);
bool claude_answer(struct driver_run *r, const char *permission_id, enum driver_answer a,
        struct buf *to_stdin);
void claude_permission_denied(struct driver_run *r, const struct json *line);
void claude_permission_done(struct driver_run *r);

void claude_reply_allow(struct buf *to_stdin, const char *request, const char *input);
void claude_reply_deny(struct buf *to_stdin, const char *request, const char *why);

/* ---- claude_question.c ---- */
/* A call of AskUserQuestion, `text` being its input.  false: it cannot be put to anybody. */
bool claude_question(
        struct driver_run *r, const char *request, const struct json *input, const char *text);
bool claude_reply(struct driver_run *r, const char *question_id, const char *p, size_t n,
        struct buf *to_stdin);
/* The agent withdrew it.  false: no such question is open. */
bool claude_question_cancelled(struct driver_run *r, const char *request);
void claude_question_done(struct driver_run *r);

/* ---- claude_result.c ---- */
void claude_result(struct driver_run *r, const struct json *line);
/* Counts what an assistant line says was used, until the result line tells better. */
void claude_seen_message(struct driver_run *r, const struct json *message, bool first);
void claude_fail(struct driver_run *r, const char *message, const char *code);
void claude_end(struct driver_run *r, const struct driver_exit *x, struct driver_outcome *ret);

#endif
