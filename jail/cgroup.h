/*
 * cgroup.h - the cgroup v2 subtree of one daemon, and one cgroup per jail in it.
 *
 * cgroup_tree_open finds the cgroup2 mount wherever it is, makes the daemon's
 * own subtree (at the root of the hierarchy, or inside the unit's delegated
 * cgroup under systemd) and enables the controllers that exist; what does not
 * exist is not an error here but a bit that is missing.  Processes enter only
 * by CLONE_INTO_CGROUP: a write to cgroup.procs costs milliseconds.  A jail is
 * killed with cgroup.kill, polled until it is empty, asked for its usage, and
 * removed.  cgroup v1 is not used.
 */
#ifndef JAIL_CGROUP_H
#define JAIL_CGROUP_H

#include "base/err.h"
#include "policy/policy.h"
#include "proto/jail.h"

#include <stdbool.h>

enum { CGROUP_NAME_MAX = 64, CGROUP_PATH_MAX = 512 };

enum cgroup_controller {
	CGROUP_MEMORY = 1 << 0,
	CGROUP_PIDS = 1 << 1,
	CGROUP_CPU = 1 << 2,
	CGROUP_IO = 1 << 3,
};

struct cgroup_tree {
	int dirfd;                  /* owned: the daemon's subtree */
	int workers;                /* owned: leaf of the file workers */
	uint32_t controllers;       /* bits of enum cgroup_controller enabled for jails */
	char path[CGROUP_PATH_MAX]; /* for people */
	char missing[128];          /* why controllers are missing, "" when none is */
	char io_device[16];         /* "8:0": the disk that io limits are for, "" when none */
};

struct cgroup {
	int dirfd;  /* owned, -1: none */
	int events; /* owned: cgroup.events; POLLPRI tells of a change */
	char name[CGROUP_NAME_MAX];
};

#define CGROUP_NONE                                                                                \
	{                                                                                          \
		.dirfd = -1, .events = -1, .name = ""                                              \
	}

/* ---- the daemon's subtree ---- */

/* `name` is one path component, for example "agentbox-<hash of the state path>". */
MUST_USE int cgroup_tree_open(const char *name, struct cgroup_tree *ret, struct err *e);
/* Kills and removes every child left by a dead daemon of the same name (workers included), within
 * `timeout_ms`.  Call it once after open, before the first cgroup_make. */
MUST_USE int cgroup_tree_sweep(struct cgroup_tree *t, int timeout_ms, struct err *e);
/* The same for one of them: what cgroup_remove could not remove.  0 when it is gone. */
MUST_USE int cgroup_sweep(
        const struct cgroup_tree *t, const char *name, int timeout_ms, struct err *e);
/* The device of fd's file system becomes the one that io limits apply to. */
void cgroup_tree_io_device(struct cgroup_tree *t, int fd);
/* Removes what is empty and closes; harmless twice. */
void cgroup_tree_close(struct cgroup_tree *t);

/* ---- one jail ---- */

/* New empty cgroup `name` with these limits; limits whose controller is missing are skipped (see
 * cgroup_limits_in_force). */
MUST_USE int cgroup_make(const struct cgroup_tree *t, const char *name, const struct limits *l,
        struct cgroup *ret, struct err *e);
/* Replaces the limits. */
MUST_USE int cgroup_limit(
        const struct cgroup_tree *t, const struct cgroup *c, const struct limits *l, struct err *e);
/* The LIMIT_* layer bits that the controllers of this tree can hold. */
uint32_t cgroup_limits_in_force(const struct cgroup_tree *t);

MUST_USE int cgroup_kill(const struct cgroup *c, struct err *e);
MUST_USE int cgroup_freeze(const struct cgroup *c, bool on, struct err *e);
/* 1: processes are left, 0: empty, -errno. */
MUST_USE int cgroup_populated(const struct cgroup *c);
/* 0 when empty, -ETIMEDOUT. */
MUST_USE int cgroup_wait_empty(const struct cgroup *c, int timeout_ms);
/* Reads what the kernel counts; fields whose file is missing stay 0.  *ret_oom_kills may be NULL.
 */
void cgroup_usage(const struct cgroup *c, struct jail_resources *ret, uint32_t *ret_oom_kills);
/* Bytes that it holds now, files that could be read again left out: by the controller, else the sum
 * of what its processes have in memory (UINT64_MAX: too many to look at).  0: not known. */
uint64_t cgroup_memory(const struct cgroup *c);
/* Forks that pids.max refused, and microseconds that cpu.max held back; 0 without the controller.
 */
void cgroup_refused(const struct cgroup *c, uint64_t *ret_forks, uint64_t *ret_cpu_us);
/* Kills what is left, waits (briefly), removes the directory, closes. Harmless on CGROUP_NONE. */
void cgroup_remove(const struct cgroup_tree *t, struct cgroup *c);

#endif
