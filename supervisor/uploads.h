/*
 * uploads.h - artifacts go to root's S3 bucket, too (docs/ARTIFACTS.md).
 *
 * With the result of a run it is written down that each of its artifacts is to go there: a row in
 * the store, in the same commit.  What is to be done is read from the store, a few rows at a time,
 * so a bucket that is away for a day costs rows and no memory; a row that is done with says so, or
 * why it failed.  agentbox-egress asks and signs.  No run waits for any of it, and none fails by
 * it.
 *
 * What is deleted here (retention, a session's end) is deleted there: those rows stay until that is
 * done.
 */
#ifndef SUPERVISOR_UPLOADS_H
#define SUPERVISOR_UPLOADS_H

#include "base/err.h"
#include "base/json.h"
#include "proto/jail.h"
#include "supervisor/store.h"

struct daemon;
struct uploads;

struct uploads *uploads_new(struct daemon *d);

/* Root's configuration is there, or another one. */
void uploads_configure(struct uploads *u);
/* Runs are known again: what an earlier supervisor has left is gone on with. */
void uploads_resume(struct uploads *u);
/* Nothing is begun any more: the process is about to end. */
void uploads_stop(struct uploads *u);

/* Where artifacts of a run that ends now go (store_finish.place), or NULL. */
const char *uploads_place(const struct uploads *u);
/* There are rows to look at: a run has ended, something was deleted. */
void uploads_wake(struct uploads *u);
/* What has become of an artifact. */
void uploads_answered(struct uploads *u, const struct jail_objected *m);

/* ---- for the API ---- */

/* Member "upload" of an artifact. */
void uploads_show(const struct store_object *x, struct jw *w);

/* A link to what is uploaded; done() comes later, once.  -EAGAIN where too many are asked for,
 * -ESTALE where it is in a bucket that is not configured any more. */
typedef void uploads_link_fn(void *ctx, const struct jail_objected *m);
MUST_USE int uploads_link(struct uploads *u, const struct store_object *x, uploads_link_fn *done,
        void *ctx, struct err *e);

#endif
