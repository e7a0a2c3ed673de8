/*
 * acp.h - what the files of agentbox-acp share: a program in the jail, between
 * the pipes of a run and an agent that speaks the Agent Client Protocol.
 *
 *	acp.c            the pipes, the loop
 *	acp_agent.c      signals, the agent's process
 *	acp_lines.c      lines both ways; which of them are for us, and our answers
 *	acp_files.c      fs/read_text_file, fs/write_text_file
 *	acp_terminals.c  terminal/create, output, wait_for_exit, kill, release
 *
 * It has the agent's rights and no other: same ids, same Landlock domain, same
 * filter, same cgroup.  What it does for the agent the agent could do itself,
 * so nothing here decides what is allowed; the kernel does.  What it must not
 * do is grow or wait without bounds.
 */
#ifndef JAIL_ACP_H
#define JAIL_ACP_H

#include "base/json.h"
#include "base/scan.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	ACP_TERMINALS = 64, /* not released; agents seen have one or two */
	ACP_WAITS = 64,     /* wait_for_exit that are not answered yet */
	ACP_TERMINAL_KEEP =
	        1 << 20, /* bytes of a terminal's output, where the agent wants no less */
	ACP_TERMINAL_TOLD = 64 << 10, /* bytes of it that the driver is told of */
	ACP_TEXT_MAX = 12 << 20,  /* of a file: escaped it may not fit a line, then it is refused */
	ACP_SCAN_MAX = 256 << 20, /* bytes of a file that are read to find the lines wanted */
	ACP_PATH_MAX = 4096,
	ACP_ARGS_MAX = 256,
	ACP_QUEUE_HIGH = 1 << 20,  /* from here on nothing more is read for that queue */
	ACP_QUEUE_MAX = 128 << 20, /* one of the longest lines, escaped, and all terminals' news */
};

/* Codes of JSON-RPC and of the protocol. */
enum {
	ACP_INVALID_PARAMS = -32602,
	ACP_INTERNAL = -32603,
	ACP_NOT_FOUND = -32002,
};

struct acp_terminal {
	uint32_t number; /* 0: free */
	pid_t pid;       /* 0: it has ended */
	int out;         /* owned: what it prints, or -1 */
	bool truncated;
	int code, sig; /* once it has ended; -1, 0 */
	size_t keep;   /* bytes */
	size_t told;   /* bytes that the driver was told */
	char half[4];  /* of a character whose rest has not come: not told yet */
	size_t nhalf;
	struct buf output; /* the last of it */
};

struct acp_wait {
	uint32_t terminal; /* 0: free */
	char *id;          /* owned: of the request, JSON text */
};

struct acp {
	bool files, terminals; /* what is served */
	pid_t agent;
	int to_agent, from_agent; /* owned, or -1 */
	struct buf up, down;      /* for our stdout, for the agent's stdin */
	struct buf mine;          /* answers that wait for the end of a line of the supervisor's */
	bool midway;              /* what is in `down` ends within a line */
	struct buf lines;         /* of the agent, not looked at yet */
	size_t looked;            /* bytes of that without a newline */
	bool stalled;             /* until there is room for what would come of them */
	bool passing;             /* a line is too long: the rest of it goes on unread */
	uint32_t last;            /* number of the last terminal */
	struct acp_terminal table[ACP_TERMINALS];
	struct acp_wait waits[ACP_WAITS];
};

/* ---- acp_lines.c ---- */
/* Bytes of the agent's stdout; bytes of our stdin. */
void acp_from_agent(struct acp *a, const char *p, size_t n);
void acp_from_supervisor(struct acp *a, const char *p, size_t n);
/* Goes on with what has stalled. */
void acp_work(struct acp *a);
/* What is left of a line when nothing more comes. */
void acp_end_of_lines(struct acp *a);

/* An answer: jw_* between these two write the members of its result; `id` is JSON text. */
struct jw acp_reply_open(struct buf *to, const char *id);
void acp_reply_close(struct acp *a, struct jw *w);
/* `result` as a whole, JSON text. */
void acp_reply(struct acp *a, const char *id, const char *result);
void acp_refuse(struct acp *a, const char *id, int code, const char *message);
/* The same with the reason of errno. */
void acp_refuse_errno(struct acp *a, const char *id, int error, const char *path);
/* A notification for the driver: as the answer. */
struct jw acp_note_open(struct buf *to, const char *method);
void acp_note_close(struct acp *a, struct jw *w);

/* A member of params as a C string; owned, NULL: it is none, too long, or has a NUL. */
char *acp_text(struct span params, const char *name, size_t max);

/* ---- acp_files.c ---- */
void acp_read_file(struct acp *a, const char *id, struct span params);
void acp_write_file(struct acp *a, const char *id, struct span params);

/* ---- acp_terminals.c ---- */
void acp_terminal_create(struct acp *a, const char *id, struct span params);
void acp_terminal_output(struct acp *a, const char *id, struct span params);
void acp_terminal_wait(struct acp *a, const char *id, struct span params);
void acp_terminal_kill(struct acp *a, const char *id, struct span params);
void acp_terminal_release(struct acp *a, const char *id, struct span params);
/* false: there was nothing to read, or it is at its end. */
bool acp_terminal_readable(struct acp *a, struct acp_terminal *t);
/* A process that was collected; does nothing for one that is no terminal's. */
void acp_terminal_ended(struct acp *a, pid_t pid, int status);
void acp_terminals_end(struct acp *a);

/* ---- acp_agent.c ---- */
_Noreturn void acp_die(const char *what); /* with the reason of errno */
void acp_mind_signals(void);
/* In a child: signals as an agent expects them, and the end together with us. */
void acp_child_signals(void);
/* Ours are named after us; the agent's, owned. */
char **acp_take_argv(int argc, char **argv);
void acp_start_agent(struct acp *a, char **argv);
/* As the agent has ended. */
_Noreturn void acp_end_as(int status);

#endif
