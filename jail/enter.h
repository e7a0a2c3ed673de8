/*
 * enter.h - what a child does between clone3 and exec: join, attach, give up,
 * prove, exec.
 *
 * The child shares our memory until its exec (CLONE_VM | CLONE_VFORK), so it
 * runs on raw system calls alone; struct enter is its whole world and carries
 * its answer back.  The steps are a table, so that an error names its step.
 * Used for PID 1 of a jail and for the file worker.
 */
#ifndef JAIL_ENTER_H
#define JAIL_ENTER_H

#include "base/err.h"
#include "jail/caps.h"
#include "jail/landlock.h"
#include "jail/overlay.h"
#include "policy/policy.h"
#include "proto/jail.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/filter.h>

/* Rules: those of every jail, of overlays, the policy's mounts, a jail's binds. */
enum { ENTER_MOUNTS = 20, ENTER_RLIMITS = 12, ENTER_RULES = 30 + POLICY_MOUNTS + JAIL_BINDS };

struct enter_mount {
	int fd;             /* detached mount; borrowed */
	const char *target; /* absolute */
	bool strict;        /* the agent may have been at work there: follow no link */
};

struct enter_rlimit {
	int resource;
	uint64_t soft, hard;
};

struct enter {
	int netns, ipcns, utsns; /* -1: stay */
	int mntns, userns;
	bool make_root;                /* attach `mounts` and /proc */
	bool strict_proc;              /* subset=pid */
	uint64_t masks;                /* template.masks */
	const struct overlay *overlay; /* with make_root: below `mounts`; NULL: none */
	struct enter_mount mounts[ENTER_MOUNTS];
	size_t nmounts;
	const char *own; /* directory of `mounts` that gets inodes of our own, or NULL */
	int landlock;    /* landlock_abi(), 0: none */
	struct landlock_rule rules[ENTER_RULES];
	size_t nrules;
	struct enter_rlimit rlimits[ENTER_RLIMITS];
	size_t nrlimits;
	struct caps_identity who;
	const struct sock_filter *filter; /* NULL: the program installs its own */
	uint16_t nfilter;
	int control;      /* becomes fd 3 */
	int program;      /* memfd to exec */
	const char *name; /* argv[0] */

	long ruleset; /* the child's own, between two of its steps */

	/* the answer */
	int step;  /* index of the last step begun */
	int error; /* errno, 0: exec'd */
};

/* Body of the child for sysc_clone; arg is a struct enter. */
int enter_main(void *arg);
/* Layer and action of a step, for people. */
const char *enter_step_name(int step);
/* The exec: a child that ends before it was killed from outside. */
bool enter_last_step(int step);

#endif
