/*
 * veiled.h - a run's events without the secrets that are in its jail (base/veil.h).
 *
 * What an agent prints is looked through before anything is made of it (pump.h).  Here
 * that is done once more with what a driver has made: texts that were escaped, or that
 * came in pieces of a message.  Of such a piece the last word waits for the next one.
 * Deterministic: the same events bring the same ones again.  Pure.
 */
#ifndef SUPERVISOR_VEILED_H
#define SUPERVISOR_VEILED_H

#include "base/veil.h"
#include "drivers/event.h"

#include <stdbool.h>
#include <stddef.h>

struct veiled;

/* false: nothing more is wanted. */
typedef bool veiled_fn(void *ctx, enum event_type t, const char *members, size_t n);

/* Owned; NULL for a veil that finds nothing.  Each function takes NULL for one. */
struct veiled *veiled_new(const struct veil *v);
void veiled_free(struct veiled *x);
const struct veil *veiled_veil(const struct veiled *x); /* borrowed, or NULL */

/* An event of a driver: goes on as it may be told, now or with a later one. */
bool veiled_event(struct veiled *x, enum event_type t, const char *members, size_t n, veiled_fn *fn,
        void *ctx);
/* Nothing follows: what waits goes on. */
bool veiled_end(struct veiled *x, veiled_fn *fn, void *ctx);
/* A text as it may be told: owned. */
char *veiled_text(const struct veiled *x, const char *p, size_t n);
/* Is something in it that may not? */
bool veiled_has(const struct veiled *x, const char *text);

#endif
