/*
 * canary.h - agentboxd <-> agentbox-canary, the program of the self-test's jail.
 *
 * The canary looks at each layer from inside, writes one struct canary_record to its stdout, and
 * waits for its end.  agentboxd adds what only shows from outside (jail/selftest.h).  The numbers
 * below are the jail's limits: both sides must know them.
 */
#ifndef PROTO_CANARY_H
#define PROTO_CANARY_H

#include "policy/layers.h"

#include <stdint.h>

#define CANARY_MAGIC 0x43414e41u
#define CANARY_PATH  "/mnt/agentbox-canary"
/* In the workspace, left behind: under whose id it is stored shows outside. */
#define CANARY_FILE "canary"
/* Of a documentation network (RFC 5737): nobody is there, so only the jail's own listener answers.
 */
#define CANARY_ADDRESS "203.0.113.7"
enum { CANARY_PORT = 443 };

enum {
	CANARY_NOFILE = 64,
	CANARY_PIDS = 12,           /* PID 1 and the canary included */
	CANARY_MEMORY = 64 << 20,   /* memory.max */
	CANARY_TOUCHED = 4 << 20,   /* of it, so that what is counted shows */
	CANARY_DISK = 8 << 20,      /* workspace and home, where they are a tmpfs */
	CANARY_FILE_MAX = 32 << 20, /* RLIMIT_FSIZE */
};

/* Name in /proc/self/ns, and the layer that it is. */
#define CANARY_SPACES(X)                                                                           \
	X("user", LAYER_USERNS)                                                                    \
	X("mnt", LAYER_MOUNTNS)                                                                    \
	X("pid", LAYER_PIDNS)                                                                      \
	X("net", LAYER_NETNS)                                                                      \
	X("ipc", LAYER_IPCNS)                                                                      \
	X("uts", LAYER_UTSNS)                                                                      \
	X("cgroup", LAYER_CGROUPNS)                                                                \
	X("time", LAYER_INODES)

enum {
#define CANARY_SPACE(name, layer) +1
	CANARY_SPACE_COUNT = 0 CANARY_SPACES(CANARY_SPACE)
#undef CANARY_SPACE
};

enum { CANARY_TEXT_MAX = 72 };

struct canary_record {
	uint32_t magic, size;
	uint32_t looked; /* bits of enum layer that the canary can judge from inside */
	uint32_t broken; /* bits: does not hold */
	uint64_t spaces[CANARY_SPACE_COUNT]; /* inode of each namespace, 0: not to be seen */
	uint32_t base;                       /* what the map says inner id 0 is outside */
	uint32_t forked;                     /* processes it could start before it was refused */
	char text[LAYER_COUNT][CANARY_TEXT_MAX]; /* of a broken one: what was seen */
};
/* One write to a pipe is then whole or not there. */
_Static_assert(sizeof(struct canary_record) <= 4096, "PIPE_BUF");

#endif
