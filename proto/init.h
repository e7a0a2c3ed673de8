/*
 * init.h - agentboxd <-> agentbox-init (PID 1 of a jail), on PID 1's fd 3.
 *
 * PID 1 executes one request after another and reports each exit.  EOF on the
 * socket means that agentboxd is gone: PID 1 kills everything and exits.
 */
#ifndef PROTO_INIT_H
#define PROTO_INIT_H

#include "proto/msg.h"

enum init_msg {
	INIT_EXEC = 1, /* -> struct init_exec; fds: exec memfd, stdin, stdout, stderr; with
	                  INIT_EXEC_ACP the program, with INIT_EXEC_GIVEN a memfd, too */
	INIT_SIGNAL,   /* -> struct init_signal */
	INIT_KILL_ALL, /* -> struct msg_head only: SIGKILL to everything but PID 1 */
	INIT_EXITED,   /* <- struct init_exited */
};

enum init_exec_flag {
	INIT_EXEC_TTY = 1 << 0,      /* stdin is a pty slave: make it the controlling terminal */
	INIT_EXEC_PACKAGES = 1 << 1, /* uid 0 keeps what `inner_root: packages` gives */
	INIT_EXEC_ACP = 1 << 2,      /* agentbox-acp starts argv[0] (jail/acp.h) */
	INIT_EXEC_GIVEN = 1 << 3,    /* variables that count before those of the request: the last
	                                memfd has "NAME=value" and a NUL for each */
};
enum { INIT_GIVEN = 4, INIT_GIVEN_BYTES = 4096 };

struct init_exec {
	struct msg_head head;
	uint64_t exec;     /* number of this exec within the jail, chosen by agentboxd */
	uint32_t uid, gid; /* inner ids */
	uint32_t flags;    /* enum init_exec_flag */
	uint32_t nproc;    /* RLIMIT_NPROC, 0 = leave (the fallback for pids.max) */
};

struct init_signal {
	struct msg_head head;
	uint64_t exec;
	int32_t sig; /* sent to the process group of that exec */
	uint32_t pad;
};

struct init_exited {
	struct msg_head head;
	uint64_t exec;
	int32_t error; /* errno when it could not be started (then nothing below counts) */
	int32_t stage; /* enum init_stage, which step failed */
	int32_t code;  /* exit code, or -1 */
	int32_t sig;   /* signal, or 0 */
};

#define INIT_STAGES(X)                                                                             \
	X(NONE, "none")                                                                            \
	X(REQUEST, "request")                                                                      \
	X(FORK, "fork")                                                                            \
	X(SESSION, "setsid")                                                                       \
	X(STDIO, "stdio")                                                                          \
	X(IDS, "ids")                                                                              \
	X(CAPS, "capabilities")                                                                    \
	X(CWD, "working directory")                                                                \
	X(EXEC, "exec")

enum init_stage {
#define INIT_STAGE_ENUM(sym, name) INIT_STAGE_##sym,
	INIT_STAGES(INIT_STAGE_ENUM)
#undef INIT_STAGE_ENUM
	        INIT_STAGE_COUNT
};

#endif
