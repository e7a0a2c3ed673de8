/*
 * trace_spans.h - a run that has ended as spans of OpenTelemetry, in OTLP's JSON.
 *
 * Pure: what the store has of the run and the lines of its log go in, spans come out,
 * the same each time.  What is taken of a line are types, times, names of tools and
 * numbers; never what anybody said, nor a path.  Bounded: what is more than
 * TRACE_SPANS is counted and left out.
 *
 *	spans_new, spans_line of each line of the run in order, spans_write, spans_free
 */
#ifndef SUPERVISOR_TRACE_SPANS_H
#define SUPERVISOR_TRACE_SPANS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRACE_SPANS = 512 /* of a run */ };

struct spans;     /* opaque */
struct store_run; /* of one that has ended */
struct logline_head;
struct jw;

/* Returns owned; `x` is borrowed for the call. */
struct spans *spans_new(const struct store_run *x);
void spans_free(struct spans *s); /* NULL is fine */

/* A line of the run.  false: it was the last one. */
bool spans_line(struct spans *s, const struct logline_head *h, const char *line, size_t n);
/* Objects separated by commas; how many of them. */
unsigned spans_write(struct spans *s, struct buf *to);
/* An attribute that is a text, of a span or of the resource; nothing without a value. */
void spans_attribute(struct jw *w, const char *name, const char *value);
/* Those that were left out. */
unsigned spans_dropped(const struct spans *s);

#endif
