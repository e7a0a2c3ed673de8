/*
 * job.h - work of agentboxd's own that may wait for a disk or another process, in a child.
 *
 * A fork of agentboxd calls one function and ends.  It sees agentboxd's memory as it was, and of
 * its descriptors those that it is given to keep, under their numbers: while it waits it holds
 * nothing open of other jails.  What it leaves comes back when it has ended: an error, bytes,
 * and descriptors.  It is root as agentboxd is; work on what strangers made drops what
 * it does not need.
 *
 * Order: job_start; the loop waits for child.pidfd; child_reap; job_end.
 */
#ifndef JAIL_JOB_H
#define JAIL_JOB_H

#include "base/err.h"
#include "jail/child.h"

#include <stddef.h>

enum { JOB_FDS = 7, JOB_BYTES = 2048, JOB_KEEP = 8 };

struct job_out {
	int fds[JOB_FDS]; /* owned, -1: none */
	size_t size;
	_Alignas(8) unsigned char bytes[JOB_BYTES];
};
#define JOB_OUT_NONE                                                                               \
	{                                                                                          \
		.fds = { -1, -1, -1, -1, -1, -1, -1 }                                              \
	}
void job_out_close(struct job_out *o); /* the descriptors nobody took */
#define auto_job_out __attribute__((cleanup(job_out_close)))

/* In the child.  0, or -errno with *e: then nothing of *out is sent. */
typedef int job_fn(const void *arg, struct job_out *out, struct err *e);

struct job_spec {
	job_fn *work;
	const void *arg; /* borrowed: for the call of job_start */
	const int *keep; /* descriptors that the work uses; -1s are skipped */
	size_t nkeep;
};

struct job {
	struct child child; /* to be killed and reaped by whoever waits */
	int socket;         /* owned: what it says */
};
#define JOB_NONE                                                                                   \
	{                                                                                          \
		.child = CHILD_NONE, .socket = -1                                                  \
	}

MUST_USE int job_start(const struct job_spec *spec, struct job *ret, struct err *e);
/* Of one whose child was reaped with this status: what its work answered.  *out is written on
 * success only.  -EIO where it ended without an answer. */
MUST_USE int job_end(struct job *j, int status, struct job_out *out, struct err *e);
/* Nobody asks for its answer any more; the child is the caller's still. */
void job_forget(struct job *j);

#endif
