/*
 * disks.h - what holds the files of a session to `limits.disk` and
 * `limits.inodes`, chosen by what the host has:
 *
 *	quota	project quota of the state's file system (projects.h)
 *	image	a file system of its own in a file (image.h)
 *	tmpfs	memory, gone with the jail: where the policy says that a workspace
 *		may be lost, and for jails without a session
 *
 * A session that has an image keeps it.  One that was made before there was a
 * limit is taken over at its next run, by a child, while nothing of it runs:
 * its files are copied into an image, or counted for a project; they stay where they
 * are until that is complete.
 *
 * The host's disk: a limit is a promise.  What is promised to living jails and
 * not yet used, and a reserve, must be free, else a run is refused.
 */
#ifndef JAIL_DISKS_H
#define JAIL_DISKS_H

#include "base/err.h"
#include "base/id.h"
#include "jail/child.h"
#include "jail/disk.h"
#include "jail/layout.h"
#include "policy/policy.h"
#include "proto/jail.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- of the host ---- */

struct disks {
	const struct state *state; /* borrowed: for its life */
	enum jail_disk method;     /* for sessions with a limit; NONE: `why` */
	struct err why;            /* why there is no project quota, and why no image */
	const char *mke2fs;        /* static */
};

/* Tries what there is; never fails. */
void disks_open(struct disks *d, const struct state *s);

/* The reserve and what is promised are free.  A job that copies ends where they are not. */
bool disks_room(const struct disks *d, uint64_t promised);

/* ---- of a session ---- */

/* Work on a session's files that has to be done before they can be used. */
enum disks_work { DISKS_WAIT, DISKS_IMAGE, DISKS_REPLACE, DISKS_ADOPT };
struct disks_job {
	enum disks_work work;
	char session[ID_MAX];
	struct child child; /* WAIT has none: something still has the files; ask again */
	int dir;            /* owned, as all fds here: of the session */
	int image;          /* a file without a name yet */
	int source;         /* what is copied, -1: nothing */
	int said;           /* what the child wrote to its stderr */
	uint32_t project;
};
#define DISKS_JOB_NONE                                                                             \
	{                                                                                          \
		.child = CHILD_NONE, .dir = -1, .image = -1, .source = -1, .said = -1              \
	}

struct disks_ask {
	const char *session;
	const struct limits *limits;  /* after narrowing */
	const struct limits *ceiling; /* the policy's: later runs may have more */
	uint64_t promised;            /* to living jails, not yet used */
	bool may_be_lost;             /* memory is better than no limit */
	bool as_it_is;                /* without limits that it does not have already */
};
/* 0; -EINPROGRESS with *job started: ask again when it has ended; or why not. */
MUST_USE int disks_session(const struct disks *d, const struct disks_ask *ask, struct disk *ret,
        struct disks_job *job, struct err *e);
/* Of a job whose child has ended with this wait status (WAIT: 0): what it made takes its place, or
 * it is as if it had not been. */
MUST_USE int disks_job_end(struct disks_job *job, int status, struct err *e);
void disks_job_abort(struct disks_job *job);

/* Limits of a session that is being deleted are lifted.  Before session_trash. */
void disks_forget(const struct disks *d, const char *session);

#endif
