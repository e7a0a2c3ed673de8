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
#include "jail/disk.h"
#include "jail/job.h"
#include "jail/layout.h"
#include "jail/reaper.h"
#include "policy/policy.h"
#include "proto/jail.h"

#include <stdbool.h>
#include <stdint.h>

#define DISKS_IMAGE "disk.img" /* in the directory of its session */

/* ---- of the host ---- */

struct disks {
	const struct state *state; /* borrowed: for its life */
	enum jail_disk method;     /* for sessions with a limit; NONE: `why` */
	struct err why;            /* why there is no project quota, and why no image */
	const char *mke2fs;        /* static */
	const char *templates;     /* borrowed: root's directory of them */
};

/* Tries what there is; never fails.  Waits for the disk and for mke2fs. */
void disks_open(struct disks *d, const struct state *s);

/* The reserve and what is promised are free, and `more` beyond what is used already (0: nothing is
 * asked). */
MUST_USE int disks_check_room(
        const struct disks *d, uint64_t promised, uint64_t more, struct err *e);
/* The reserve and what is promised are free.  A job that copies ends where they are not. */
bool disks_room(const struct disks *d, uint64_t promised);

/* ---- of a session ---- */

struct disks_ask {
	char session[ID_MAX];
	char snapshot[NAME_MAX_LEN]; /* "" or what it stands on, if nothing is there yet */
	char template[NAME_MAX_LEN]; /* "" or what is copied into it then (copy.h) */
	struct limits limits;        /* after narrowing */
	struct limits ceiling;       /* the policy's: later runs may have more */
	uint64_t promised;           /* to living jails, not yet used */
	bool may_be_lost;            /* memory is better than no limit */
	bool required;               /* no run without its limits, whatever the host has */
	bool as_it_is;               /* without limits that it does not have already */
};

/* What is going on with a session's files until they can be used. */
enum disks_step {
	DISKS_WAIT,  /* no child: something still has the files; go on in a while */
	DISKS_OPEN,  /* the child looks what they need */
	DISKS_FILL,  /* mke2fs copies them into an image */
	DISKS_NAME,  /* the image takes its place */
	DISKS_COUNT, /* they are counted for a project */
};
struct disks_job {
	enum disks_step step;
	struct disks_ask ask; /* `promised` may be changed between steps */
	struct job job;       /* its child is watched by the caller */
	int dir;              /* owned, as all fds here: of the session */
	int image;            /* a file without a name yet */
	int source;           /* what is copied, -1: nothing */
	int said;             /* what mke2fs wrote to its stderr */
	bool replaces;        /* there is an image already */
	bool worked;          /* the files were made ready once */
};
#define DISKS_JOB_NONE                                                                             \
	{                                                                                          \
		.job = JOB_NONE, .dir = -1, .image = -1, .source = -1, .said = -1                  \
	}

struct disks_opened {
	struct disk disk;   /* owned */
	struct err without; /* why it is without its limits; code 0: it has them */
};

/* 0 with *ret; -EINPROGRESS with *job under way, then disks_job_next; or why not. */
MUST_USE int disks_session(const struct disks *d, const struct disks_ask *ask,
        struct disks_opened *ret, struct disks_job *job, struct err *e);
/* -EINPROGRESS: not even begun, something else works on its files. */
MUST_USE int disks_job_wait(struct disks_job *job, const struct disks_ask *ask);
/* The child was reaped with this wait status (WAIT: 0).  As disks_session; unless it goes on, the
 * job is closed. */
MUST_USE int disks_job_next(const struct disks *d, struct disks_job *job, int status,
        struct disks_opened *ret, struct err *e);
/* Kills what is under way; `r` collects it. */
void disks_job_abort(struct disks_job *job, struct reaper *r);
void disks_job_close(struct disks_job *job); /* one without a child */
#define auto_job __attribute__((cleanup(disks_job_close)))

/* Limits of a session that is being deleted are lifted.  Before session_trash. */
void disks_forget(const struct disks *d, const char *session);

#endif
