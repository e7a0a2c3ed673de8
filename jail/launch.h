/*
 * launch.h - from a kit to a running jail, and programs inside it.
 *
 * launch_jail clones PID 1 (agentbox-init) into the kit's cgroup, lets it join
 * and attach what the kit holds, enter the jail's user namespace last, drop
 * everything, prove it, and exec.  The caller is blocked until that exec (a
 * fraction of a millisecond) and learns the step that failed.  Later programs in
 * the same jail are one message to PID 1 (launch_exec); files are reached
 * through a worker in the jail's mount namespace (launch_worker), which works
 * after the jail's last process is gone too, until launched_free.
 *
 * Order of calls: launch_jail; read `control` for INIT_EXITED messages; poll
 * `pidfd`; cgroup_kill to end it; launch_reap when pidfd is readable; cgroup_usage;
 * launch_worker as needed; launched_free; give the lease back.
 *
 * The calling process becomes non-dumpable (the mm is shared with the child until
 * its exec), needs a single thread, and must be the one that reaps.
 */
#ifndef JAIL_LAUNCH_H
#define JAIL_LAUNCH_H

#include "base/err.h"
#include "jail/kit.h"
#include "jail/template.h"
#include "policy/policy.h"
#include "proto/init.h"
#include "proto/jail.h"

#include <stdbool.h>
#include <sys/types.h>

/* Our ends of one program's stdio: O_NONBLOCK, CLOEXEC.  With a tty, `in` is the master and the
 * others are -1.  All owned. */
struct launch_stdio {
	int in, out, err;
};
#define LAUNCH_STDIO_NONE                                                                          \
	{                                                                                          \
		-1, -1, -1                                                                         \
	}
void launch_stdio_close(struct launch_stdio *s);

/* A program to run: `memfd` holds proto/exec.h bytes. */
struct launch_program {
	uint64_t exec;  /* number within the jail, comes back in INIT_EXITED */
	int memfd;      /* borrowed */
	uint32_t flags; /* JAIL_MAKE_TTY, JAIL_MAKE_ROOT, JAIL_MAKE_ACP, JAIL_MAKE_SECRETS */
	int acp;        /* with JAIL_MAKE_ACP: launch_load("agentbox-acp"); borrowed */
	int given;      /* with JAIL_MAKE_SECRETS: of given.h; borrowed */
};

struct launch_bind {
	int source;         /* O_PATH, checked by the caller; borrowed */
	const char *target; /* absolute, normalised, strictly below /mnt or /workspace */
	bool writable;
};

struct launch_spec {
	const struct policy *policy;
	const struct limits *limits; /* after narrowing */
	const struct template *root;
	struct kit *kit; /* takes: freed on failure, in launched.kit on success */
	int workspace,
	        home;     /* directories stored under ID_STORE_BASE ids, or -1: tmpfs; borrowed */
	const int *lower; /* what the workspace stands on (merge.h), or NULL */
	const int *session_mounts; /* {home, workspace}: those directories as detached mounts, used
	                              up; NULL: the directories are cloned */
	bool disk_held;            /* they have the limits of disk and inodes */
	int agent;                 /* directory shown read-only at /opt/agent, or -1; borrowed */
	const struct launch_bind *binds;
	size_t nbinds;                        /* at most JAIL_BINDS */
	int init_memfd;                       /* launch_load("agentbox-init"); borrowed */
	const struct launch_program *program; /* queued for PID 1 before it starts, or NULL */
};

struct launched {
	pid_t pid;       /* of PID 1, in our pid namespace */
	int pidfd;       /* owned, as all fds here */
	int control;     /* SOCK_SEQPACKET to PID 1 (proto/init.h), O_NONBLOCK */
	struct kit *kit; /* owned: userns, listeners, cgroup, devpts, base */
	uint32_t policy_flags;
	uint32_t nproc;            /* RLIMIT_NPROC of programs, 0: pids.max counts */
	uint32_t layers, fallback; /* bits of enum layer in force, or stood in for */
	int64_t make_us;           /* launch_jail from call to PID 1's exec */
	struct launch_stdio stdio; /* of spec.program */
	uint64_t rss_peak_bytes;   /* after launch_reap: the largest process PID 1 collected; for
	                              hosts   without memory.peak */
	uint64_t cpu_us;           /* likewise, of all that PID 1 collected */
};

/* A program file as a sealed memfd of mode 0111: what is exec'd cannot be read, traced or
 * replaced.  fd (owned) or -errno. */
MUST_USE int launch_load(int dirfd, const char *name, struct err *e);

MUST_USE int launch_jail(const struct launch_spec *spec, struct launched *ret, struct err *e);

/* One more program in a live jail.  `ret` is owned by the caller. */
MUST_USE int launch_exec(const struct launched *j, const struct launch_program *p,
        struct launch_stdio *ret, struct err *e);
/* INIT_SIGNAL to the process group of exec; JAIL_SIGNAL_RESIZE is not for here. */
MUST_USE int launch_signal(const struct launched *j, uint64_t exec, int sig, struct err *e);
/* INIT_KILL_ALL: everything but PID 1. */
MUST_USE int launch_kill_all(const struct launched *j, struct err *e);
/* Collects PID 1 once pidfd is readable; 0, or -EAGAIN when it lives. */
MUST_USE int launch_reap(struct launched *j);

/* A file worker: socket for the supervisor (owned), and its pidfd so that the caller can kill and
 * reap it (owned).  The worker ends at EOF of the socket. */
struct launch_worker {
	int socket, pidfd;
	pid_t pid;
};
MUST_USE int launch_worker(
        const struct launched *j, int worker_memfd, struct launch_worker *ret, struct err *e);
void launch_worker_kill(const struct launch_worker *w);
/* Kills and reaps it, closes both.  Waits for it, and for its disk. */
void launch_worker_end(struct launch_worker *w);

/* Kills what lives, reaps, closes, frees the kit (cgroup removed).  The lease is free after. */
void launched_free(struct launched *j);

#endif
