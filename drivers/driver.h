/*
 * driver.h - the contract of a driver: a dialect of agent CLI.
 *
 * A driver turns a run's specification into a command line and bytes for
 * stdin, and an agent's output lines into events.  Pure: no descriptors, no
 * clock, no files; the supervisor moves the bytes.  One `struct driver` a
 * file, listed in drivers[] of driver.c; the table is the registry.
 *
 * Order of calls: check, command, open, start, then line / error_line as they
 * come, with a flush when no more of them is at hand, interrupt at most once,
 * end exactly once, close.  A process that waits for another run (rest) gets
 * another driver_run for it: open with `live`, start, and so on.
 */
#ifndef DRIVERS_DRIVER_H
#define DRIVERS_DRIVER_H

#include "base/buf.h"
#include "base/err.h"
#include "drivers/ability.h"
#include "drivers/event.h"

#include <stdbool.h>
#include <stdint.h>

/* Where every jail has the agent's home and its workspace. */
#define DRIVER_HOME      "/home/agent"
#define DRIVER_WORKSPACE "/workspace"

enum driver_permissions { PERMISSIONS_AUTO, PERMISSIONS_ASK, PERMISSIONS_DENY };

struct driver_mcp {
	const char *name;
	const char *const *command; /* NULL-terminated argv, or NULL */
	const char *const *env;     /* "K=V", NULL-terminated, or NULL */
	const char *url;            /* instead of command */
	const char *const *headers; /* "K: V", or NULL */
};

/* What a run asks of the agent.  All borrowed: for the call. */
struct driver_spec {
	const char *prompt;
	size_t prompt_len;
	const char *system_prompt;      /* NULL or text */
	const char *model;              /* NULL: the agent's default */
	const char *const *tools_allow; /* NULL: no restriction; empty list: no tool at all */
	const char *const *tools_deny;
	const struct driver_mcp *mcp;
	size_t nmcp;
	uint32_t max_turns; /* 0: none */
	enum driver_permissions permissions;
	const char *resume;         /* the agent's own session id of an earlier run, or NULL */
	const char *const *command; /* exec driver: the harness's argv, where there is no program */
	const char *program;        /* path of the agent's binary in the jail, or NULL */
	const char *const *args;    /* extra argv of agent.yaml, or NULL */
	const char *model_flag;   /* exec, codex-exec: argument before the model's name, or NULL */
	const char *instructions; /* exec, codex-exec: file of the system prompt, or NULL */
	/* acp: what the protocol leaves to each agent; NULL where it needs no telling. */
	const char *mode, *ask_mode; /* mode of the session, and where somebody is to be asked */
	const char *auth_method;     /* when it wants to be told how to log in */
	const char *const *failure_text; /* beginnings of a last text that tells a failure */
	bool usage_sums;                 /* its usage is the session's, not the turn's */
	bool stays;           /* when its run is over it is to wait for another one: see rest */
	const char *live;     /* what the driver of the run before left; NULL: the process is new */
	const char *mcp_flag; /* argument before @FILE of the servers that are programs */
	/* what a $ in env and headers of servers (with mcp_flag, in all of it) is written as */
	const char *mcp_dollar;
	bool acp_files, acp_terminals; /* what agentbox-acp serves it in the jail */
};

/* What to start.  Filled by command(); freed by driver_command_done. */
struct driver_file {
	char *path; /* owned; below the agent's home */
	char *text; /* owned */
};
struct driver_command {
	char **argv;               /* owned, NULL-terminated */
	char **env;                /* owned, "K=V", NULL-terminated; added to agent.yaml's */
	struct driver_file *files; /* owned; written before the start */
	size_t nfiles;
	bool below_acp; /* started by agentbox-acp (jail/acp.h) */
};
void driver_command_done(struct driver_command *c);

enum driver_status { DRIVER_SUCCEEDED, DRIVER_FAILED };

struct driver_usage {
	int64_t input_tokens, output_tokens, cached_tokens;
	double cost_usd; /* negative: not known */
	int64_t turns;
};

/* How the process ended, as the supervisor saw it. */
struct driver_exit {
	int code;         /* or -1 */
	int sig;          /* or 0 */
	bool interrupted; /* we cancelled it */
};

struct driver_outcome {
	enum driver_status status;
	char *final_text; /* owned; never NULL after end() */
	char *error;      /* owned, or NULL */
	char *resume;     /* owned; the agent's session id, or NULL */
	bool resume_lost; /* the id it was told to resume does not exist any more */
	bool max_turns;   /* ended by the turn limit */
	struct driver_usage usage;
	int64_t tool_calls;
};
void driver_outcome_done(struct driver_outcome *o);

struct driver_run;     /* a driver's own state of one run */
struct driver_dialect; /* how agents of one family differ; its header says */

/* What a person says to a permission.asked event. */
enum driver_answer {
	ANSWER_DENY,
	ANSWER_ONCE,
	ANSWER_ALWAYS /* this tool, for the rest of the run */
};

struct driver {
	const char *name;
	/* What its dialect can: bits CAN(x) of ability.h; and which of them only where agent.yaml
	 * says how (MODEL: model_flag, SYSTEM_PROMPT: instructions). */
	uint32_t can, can_if_told;
	const struct driver_dialect *dialect; /* NULL: it has no family */
	/* When it has closed stdin it has heard all there is: an agent that stays is ended. */
	bool over_at_eof;
	/* Can this be honoured?  Harness lint and the run both ask.  -ENOEXEC with the reason. */
	int (*check)(const struct driver_spec *spec, struct err *e);
	int (*command)(const struct driver_spec *spec, struct driver_command *ret, struct err *e);
	struct driver_run *(*open)(
	        const struct driver *d, const struct driver_spec *spec, struct event_sink *sink);
	/* Bytes for stdin now; *ret_eof: close stdin after them. */
	int (*start)(struct driver_run *r, struct buf *to_stdin, bool *ret_eof);
	/* One line of stdout without its newline (`whole` false: a piece of a line beyond
	 * LIMIT_LINE; emit agent.raw).  May append to to_stdin; *ret_eof as above. */
	void (*line)(struct driver_run *r, const char *p, size_t n, bool whole,
	        struct buf *to_stdin, bool *ret_eof);
	void (*error_line)(struct driver_run *r, const char *p, size_t n); /* of stderr */
	/* The lines of one read have all come: emits what was held back to go in one event.  NULL:
	 * this driver holds nothing back. */
	void (*flush)(struct driver_run *r);
	/* How many answers of its model have begun, as the agent tells them.  NULL: it does not;
	 * then they are counted by the events. */
	int64_t (*turns)(const struct driver_run *r);
	/* Asks the agent to stop by its protocol.  false: not now, signal it.  NULL: there is no
	 * way, always signal it. */
	bool (*interrupt)(struct driver_run *r, struct buf *to_stdin);
	/* An answer to permission.asked; emits permission.answered.  false: no such question is
	 * open.  NULL: this driver never asks. */
	bool (*answer)(struct driver_run *r, const char *permission_id, enum driver_answer a,
	        struct buf *to_stdin);
	/* What a person says to question.asked (p NULL: nobody does); emits question.answered.
	 * false: no such question is open.  NULL: this driver never asks any. */
	bool (*reply)(struct driver_run *r, const char *question_id, const char *p, size_t n,
	        struct buf *to_stdin);
	/* One more message of the user while it runs.  false: too late.  NULL: there is no way. */
	bool (*input)(struct driver_run *r, const char *p, size_t n, struct buf *to_stdin);
	/* `line` has just said that stdin may be closed.  It stays open: the process waits for
	 * another run of its conversation.  What that run's driver must know, owned (JSON of ours:
	 * it is kept, and replayed); NULL: it cannot wait, or it did not succeed.  NULL: none of
	 * them does. */
	char *(*rest)(const struct driver_run *r);
	/* A line of stdout while it waits: does it say nothing? */
	bool (*idle)(const char *p, size_t n);
	/* Closes open tool calls, emits what is still owed, tells the outcome. */
	void (*end)(struct driver_run *r, const struct driver_exit *x, struct driver_outcome *ret);
	void (*close)(struct driver_run *r); /* NULL is fine */
};

/* Bits of what a specification asks an agent to be able to. */
uint32_t driver_wants(const struct driver_spec *spec);

const struct driver *driver_find(const char *name); /* NULL: no such driver */
const char *driver_name(size_t i);                  /* of the i-th driver, NULL past the last */

extern const struct driver driver_exec, driver_claude, driver_codex, driver_codex_exec, driver_acp,
        driver_pi, driver_pi_json, driver_opencode, driver_gemini, driver_copilot, driver_qwen,
        driver_amp;

#endif
