/*
 * checkout.h - what a run has to do with a repository: what it asks for, what its session's
 * workspace was checked out from, and what came of it.
 */
#ifndef SUPERVISOR_CHECKOUT_H
#define SUPERVISOR_CHECKOUT_H

#include "base/buf.h"
#include "base/err.h"
#include "supervisor/repo.h"
#include "supervisor/store.h"

#include <stdbool.h>

struct changes;
struct harness;
struct jailed;
struct policies;

struct checkout {
	bool loaded;
	bool asked, of_run;    /* the run, or its harness, wants one; the run itself does */
	bool known;            /* the workspace is one */
	bool collected;        /* it was tried */
	struct repo_ask ask;   /* when it was asked for */
	struct store_repo was; /* when it is known */
	struct jailed *jailed; /* owned: what is being done in a jail */
	struct changes *changes;
	struct buf said;   /* what the first program has said */
	struct buf result; /* JSON: `repo` of the run's result; empty: none */
};

/* -EBUSY: the workspace was checked out from something else. */
MUST_USE int checkout_load(struct checkout *c, struct store *st, const struct harness *h,
        const char *run, const char *session, struct err *e);
/* At the door: can the harness have what is asked for (NULL: what its own file says)?  -ENOEXEC,
 * and what would be needed. */
MUST_USE int checkout_admit(const struct policies *p, const struct harness *h,
        const struct repo_ask *ask, struct err *e);
void checkout_done(struct checkout *c); /* zeroed is fine */

#endif
