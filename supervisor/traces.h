/*
 * traces.h - runs that have ended are told to a collector of OpenTelemetry, as root's `otlp`
 * says (docs/TRACES.md).
 *
 * With a run that is accepted, and that is to be told of, a row is written (as webhooks have,
 * under a name that none can have), and it goes when the collector has the run's spans.
 * These are made from the store's record and the log, after the end of the run, and anew for
 * each attempt: in memory is an id a run.  Batched; one request at a time.  A run never waits for
 * any of it.
 */
#ifndef SUPERVISOR_TRACES_H
#define SUPERVISOR_TRACES_H

#include "base/buf.h"
#include "base/err.h"
#include "proto/jail.h"
#include "supervisor/store.h"

#include <stdbool.h>

struct daemon;
struct jw;
struct trace;
struct traces;

struct traces *traces_new(struct daemon *d);

/* Root's configuration is there, or another one. */
void traces_configure(struct traces *t);
/* Nothing is begun any more: the process is about to end. */
void traces_stop(struct traces *t);

/* Adds itself to those that are to be told of the run; text: its kept trace (trace.h), or NULL. */
void traces_for(
        const struct traces *t, const char *run, const char *text, struct store_webhooks *ret);
/* Is the run told of?  Its trace in any case. */
bool traces_sample(const struct traces *t, const char *run, const char *text, struct trace *ret);
/* A row that is in the store now: is it ours? */
bool traces_follow(struct traces *t, const struct store_delivery *x);
/* The run has ended, and its result is durable. */
void traces_over(struct traces *t, const char *run);
/* The session is deleted, and with it what would be told. */
void traces_forget(struct traces *t, const char *session);
/* What the collector has answered: was it asked by us?  Delivery 0: to all that is under way. */
bool traces_answered(struct traces *t, const struct jail_hooked *m);

/* The member `traceId` of a run, where traces are told or it came with one. */
void traces_member(const struct traces *t, const char *run, const char *text, struct jw *w);

#endif
