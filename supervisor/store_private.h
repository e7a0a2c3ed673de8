/*
 * store_private.h - struct store and its jobs, shared by store.c (thread, commits),
 * store_write.c (what is written) and store_read.c (what is read).
 */
#ifndef SUPERVISOR_STORE_PRIVATE_H
#define SUPERVISOR_STORE_PRIVATE_H

#include "base/list.h"
#include "supervisor/db.h"
#include "supervisor/loop.h"
#include "supervisor/store_sql.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct stats;

enum { STORE_PARAMS = 8 };

struct step {
	struct list link; /* in job.steps */
	enum write stmt;
	size_t nparams;
	struct db_param params[STORE_PARAMS]; /* p is owned */
};

struct job {
	struct list link; /* in store.queue, then store.finished */
	struct list steps;
	int sync_fd; /* owned, or -1 */
	/* May be NULL: a failure is logged. */
	void (*done)(void *ctx, int rc, const struct err *e);
	void *ctx;
	int rc;
	struct err err;
};

struct store {
	struct db *db, *reader; /* owned */
	pthread_t thread;
	bool threaded;
	pthread_mutex_t lock; /* queue, finished, busy, closing, commits, errors */
	pthread_cond_t work, idle;
	struct list queue, finished;
	bool busy, closing;
	bool large; /* the writer's: a large row was written since it gave memory back */
	uint64_t commits, errors;
	int wake_fd; /* eventfd: something is in `finished` */
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

#endif
