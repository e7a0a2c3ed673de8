/*
 * store_private.h - struct store and its jobs, shared by store.c (thread, commits),
 * store_write.c (what is written) and store_read.c (what is read).
 */
#ifndef SUPERVISOR_STORE_PRIVATE_H
#define SUPERVISOR_STORE_PRIVATE_H

#include "base/id.h"
#include "base/list.h"
#include "supervisor/db.h"
#include "supervisor/loop.h"
#include "supervisor/stats.h"
#include "supervisor/store_sql.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct syncs;

enum { STORE_PARAMS = 9 };

struct step {
	struct list link; /* in job.steps */
	enum write stmt;
	size_t nparams;
	struct db_param params[STORE_PARAMS]; /* p is owned */
};

struct job {
	struct list link; /* in store.queue, then store.finished */
	struct list steps;
	int sync_fd;         /* owned, or -1 */
	struct {             /* artifacts to be synced by themselves; n 0: none */
		int root_fd; /* borrowed */
		char run[ID_MAX];
		size_t n;
	} kept;
	bool later;    /* a sync that nobody waits for */
	char *copy_to; /* owned: a copy of the database is wanted there, or NULL */
	/* May be NULL: a failure is logged. */
	void (*done)(void *ctx, int rc, const struct err *e);
	void *ctx;
	int rc;
	struct err err;
};

struct store {
	struct db *db, *reader; /* owned */
	struct syncs *syncs;    /* owned; the writer's */
	pthread_t thread;
	bool threaded;
	pthread_mutex_t lock; /* queue, finished, busy, closing, commits, errors */
	pthread_cond_t work, idle;
	struct list queue, finished;
	struct list later; /* the writer's: job.link of those */
	size_t nlater;
	bool busy, closing;
	struct job *copying;  /* the writer's, owned: whose copy is being made, or NULL */
	struct db_copy *copy; /* likewise */
	bool large;           /* the writer's: a large row was written since it gave memory back */
	uint64_t commits, errors;
	struct stats_histogram took; /* those commits, each with its syncs; under the lock */
	int wake_fd;                 /* eventfd: something is in `finished` */
	struct op wake;
	struct loop *loop;   /* borrowed, NULL in tests */
	struct stats *stats; /* borrowed */
};

struct job *store_job(void (*done)(void *ctx, int rc, const struct err *e), void *ctx);
/* types: t text (const char *, NULL allowed), b blob (const char *, size_t), i (int64_t).  All is
 * copied. */
void store_job_add(struct job *j, enum write stmt, const char *types, ...);
void store_job_free(struct job *j);
void store_submit(struct store *st, struct job *j); /* takes j */

/* On the writer's thread (store_copy.c): begins the job's copy, and takes it off its list; on
 * failure the job has the error. */
void store_copy_begin(struct store *st, struct job *j);
/* Some pages more.  The job when it is over, else NULL. */
struct job *store_copy_go_on(struct store *st);

#endif
