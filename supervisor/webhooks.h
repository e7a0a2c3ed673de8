/*
 * webhooks.h - whoever root names is told of runs (docs/WEBHOOKS.md).
 *
 * With a run that is accepted it is written down which webhooks are to be told
 * of it, and from which event on: a *delivery*, a row in the store, in the same
 * commit.  What is told is read from the event log, so nothing is queued: a
 * receiver that is dead for a day costs a row and 500 bytes of memory a run.  Each
 * event is told at least once, in the order of its run; one that was answered is
 * behind the row's number, one that is too old or refused is given up and counted.
 *
 * A run never waits for a webhook.
 */
#ifndef SUPERVISOR_WEBHOOKS_H
#define SUPERVISOR_WEBHOOKS_H

#include "base/buf.h"
#include "base/err.h"
#include "policy/harness.h"
#include "proto/jail.h"
#include "supervisor/store.h"

struct daemon;
struct webhooks;

struct webhooks *webhooks_new(struct daemon *d);

/* Root's configuration is there, or another one. */
void webhooks_configure(struct webhooks *w);
/* What an earlier supervisor has left; after the first configuration. */
MUST_USE int webhooks_load(struct webhooks *w, struct err *e);
/* Nothing is begun any more: the process is about to end. */
void webhooks_stop(struct webhooks *w);

/* Those that want to be told of such a run. */
void webhooks_for(const struct webhooks *w, const struct harness *h, const char *user,
        struct store_webhooks *ret);
/* A delivery that is in the store now; also one of traces.h. */
void webhooks_follow(struct webhooks *w, const struct store_delivery *x);
/* The session is deleted, and with it what would be told. */
void webhooks_forget(struct webhooks *w, const char *session);
/* What a receiver has answered. */
void webhooks_answered(struct webhooks *w, const struct jail_hooked *m);

/* ---- for the API ---- */

/* Objects separated by commas. */
void webhooks_list(const struct webhooks *w, struct buf *json);

/* Sends an event that is none and waits for the answer; done() comes later, once.  -ENOENT, or
 * -EAGAIN where too many are under way. */
typedef void webhooks_tried_fn(void *ctx, const struct jail_hooked *m);
MUST_USE int webhooks_try(
        struct webhooks *w, const char *name, webhooks_tried_fn *done, void *ctx, struct err *e);

#endif
